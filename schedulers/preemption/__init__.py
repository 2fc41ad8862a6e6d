"""Which waiting jobs have units taken away for them, and from whom?"""
