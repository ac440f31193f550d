"""The session files that coding agents keep, one small reader a client over one shape (`shape`); `reading` puts them
together.

They are other programs' files and change without notice, so what is not understood is left out and named.
"""
