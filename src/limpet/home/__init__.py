"""Where data lives, which project a folder belongs to, what of a repository is believed, and the settings that follow.

Data lives with the person, outside of any working tree. A repository is a stranger: nothing in it decides where data
goes. place.py finds the project of a folder, folders.py its folder in the data folder, trust.py reads what a
repository says, and load.py puts arguments, environment, the person's settings and the repository's together.
"""
