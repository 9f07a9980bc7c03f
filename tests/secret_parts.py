"""Building blocks of the secrets in `data_redact.py` and `secret_examples.py`, assembled at run time so that
no scanner mistakes a file for a leak."""

import base64
import hashlib


def b64(seed: str, size: int = 48) -> str:
    return base64.b64encode(hashlib.shake_256(seed.encode()).digest(size)).decode()


def b64url(seed: str, size: int = 48) -> str:
    return b64(seed, size).translate({43: "-", 47: "_", 61: None})


def hexed(seed: str, size: int = 16) -> str:
    return hashlib.shake_256(seed.encode()).hexdigest(size)


def word(seed: str, size: int) -> str:
    return b64url(seed, size * 2).replace("-", "7").replace("_", "Q")[:size]


def base32(seed: str, size: int = 10) -> str:
    return base64.b32encode(hashlib.shake_256(seed.encode()).digest(size)).decode()


A36 = "a1B2" * 9
HEX32 = "0123456789abcdef" * 2
HEX40 = "a94a8fe5cc" * 4
HEX64 = HEX32 * 2
MIXED = "Zx9Qw7Lm3Kp5" * 10
UUID = "01234567-89ab-cdef-0123-456789abcdef"
BASE64_KEY = base64.b64encode(hashlib.sha512(b"storage").digest()).decode()
JWT = ".".join(["eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0In0", "s5Dk3v_" + MIXED[:30]])
PEM_BODY = "\n".join([MIXED[:64]] * 6)
GITHUB = "ghp_" + word("github", 36)
AWS = "AKIA" + "Z7QRTMN5HHWFPKD2"
HEADER = "eyJ" + "hbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0"
SEALED = f"{b64url('iv', 12)}.{b64url('cipher', 60)}.{b64url('tag', 16)}"
JWE, JWE_KEY = f"{HEADER}..{SEALED}", f"{HEADER}.{b64url('k', 256)}.{SEALED}"
JWT_TEXT = f"{HEADER}.{b64url('no json here', 21)}.{b64url('signature', 32)}"
JWT_NONE = "eyJ" + "hbGciOiJub25lIn0" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + "."
BCRYPT = "$2y$" + "12$" + word("bcrypt", 53)
SHA512 = "$6$" + "rounds=5000$" + word("salt", 16) + "$" + word("shadow", 86)
APR1 = "$apr1$" + word("s", 8) + "$" + word("apr", 22)
ETHER = "0x" + hexed("ether", 32)
ZERO_WIDTH = GITHUB[:12] + "\u200b" + GITHUB[12:30] + "\u2060" + GITHUB[30:]


def pem(label: str, end: bool = True) -> str:
    return f"-----BEGIN {label}-----\n{PEM_BODY}\n" + (f"-----END {label}-----" if end else "")
