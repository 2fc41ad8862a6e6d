"""What goes on in a run while it goes on?"""
