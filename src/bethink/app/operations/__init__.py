"""The operations that several surfaces share, by theme: typed functions that take checked values, print nothing and know no caller.

`app/operation.py` says how a function becomes an operation. A result is a light value; each surface makes text or JSON of it.
Modules here load quickly: what is heavy is imported inside the functions.
"""
