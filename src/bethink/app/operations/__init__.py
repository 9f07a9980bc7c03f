"""Operations that several surfaces share: typed functions over checked values that print nothing.

`app/operation.py` says how a function becomes an operation. A result is a light value; each surface makes text or JSON of it.
Modules here load quickly: heavy imports are inside the functions.
"""
