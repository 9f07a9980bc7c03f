"""Hash functions without OpenSSL, whose library takes longer to load than a search takes to run."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import blake2b as blake2b
    from hashlib import sha256 as sha256
else:
    try:
        from _blake2 import blake2b as blake2b

        from _sha2 import sha256 as sha256
    except ImportError:
        try:
            from _sha256 import sha256 as sha256  # until Python 3.12
        except ImportError:
            from hashlib import blake2b as blake2b
            from hashlib import sha256 as sha256
