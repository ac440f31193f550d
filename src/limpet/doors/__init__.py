"""The doors: each one lets a kind of caller in and gives the same answers as the others.

Nothing is imported here, so that opening one door never pays for the start-up of another.
"""
