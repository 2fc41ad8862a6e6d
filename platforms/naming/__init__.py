"""How are nodes called and numbered, which units are theirs, and where do they stand?"""
