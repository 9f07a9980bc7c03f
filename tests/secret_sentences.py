"""Made-up secrets told in ordinary sentences, and sentences about passwords that hold none.

The rules were written with `SECRETS` and `LOOKALIKES` in view; the `UNSEEN_` lists were first run when the rules were done.
"""

from secret_parts import b64, word

LETTERS = "".join(filter(str.isalpha, word("sentences", 80).lower()))

SECRETS = [
    ("for-colon", "the password for jenkins: {}", "2qHx6kwXoIIX"),
    ("for-words-colon", "password for the staging db: {}", "Tr0ub4dor&3"),
    ("pass-for", "pass for grafana = {}", "Qwe123rty!"),
    ("of-is", "the root password of db1 is {}", "correct-horse-9"),
    ("german-for", "Passwort für Jenkins: {}", "2qHx6kwXoIIX"),
    ("aws-words", "AWS secret key {}", b64("awswords", 30)),
    ("aws-short", "AWS secret {}", b64("awsshort", 30)),
    ("with-secret", "user deploy with secret {}", "9f8Gh2kLmN0pQrS"),
    ("login-pair", "login admin / {}", "GvOoNZYW2m"),
    ("letters-key", "api_key={}", "sk-" + "proj-" + LETTERS[:24]),
    ("spanish-for", "La contraseña para el servidor de pruebas: {}", "Zorro-81kq"),
    ("french-for", "mot de passe pour le wiki : {}", "Hibou72xQ"),
    ("token-for", "token for the registry: {}", word("tokenfor", 24)),
    ("pwd-for-is", "pwd for the nas is {}", "kl9Wq2Zz"),
    ("login-for", "Login für das Portal: ada / {}", "Meise-44tp"),
]
LOOKALIKES = [
    ("rotated", "the password for jenkins is rotated monthly"),
    ("length", "password of at least 12 characters"),
    ("good-tests", "the secret of good tests: small ones"),
    ("german-never", "Passwort für alle: nie weitergeben"),
    ("kept-in", "the password for the staging db: see 1Password"),
    ("in-vault", "password for grafana: vault/prod/grafana2"),
    ("variable", "password for db = db_password2"),
    ("environment", "password for the db: $DB_PASSWORD"),
    ("tokens-for", "token for each request: 15 minutes"),
    ("token-count", "tokens for gpt4: 128k"),
    ("secret-santa", "secret santa on 2026-12-06"),
    ("secret-name", "kubernetes secret db-credentials-2"),
    ("secret-manager", "AWS secret manager stores it"),
    ("secret-path", "secret kv/data/production/db1"),
    ("login-page", "login page / signup page2"),
    ("login-slash", "login OAuth2 / OIDC"),
    ("pass-through", "pass for step 2 = 14 of 15 tests"),
    ("passes-for", "tests pass for python3.11: yes"),
    ("issue", "password of the user: see issue #4711"),
    ("date", "the password for jenkins: changed on 2026-04-01"),
]
UNSEEN_SECRETS = [
    ("passphrase-for", "Passphrase for the backup key: {}", "Osprey!Lamp77"),
    ("to-db", "password to the customer database: {}", "7hGtR4mmQx"),
    ("possessive-user", "password for user bob@shop.io = {}", "Sn4ilMail!"),
    ("german-of", "Das Passwort von der Testdatenbank lautet {}", "Igel29Kx"),
    ("german-zum", "Kennwort für den VPN-Zugang: {}", "uT6zP0wq"),
    ("portuguese-para", "senha para o painel: {}", "Papagaio7$k"),
    ("spanish-of", "contraseña de la base de datos: {}", "Mx71LoboAz"),
    ("secret-for", "client secret for the payments app: {}", word("secretfor", 32)),
    ("secret-key-plain", "secret key {} goes into the vault", b64("skp", 30)),
    ("pw-for", "pw for the printer: {}", "Epson88!x"),
    ("login-user", "login root / {}", "hT5nQ2vvK"),
    ("api-key-for", "the api key for mapbox is {}", word("apifor", 30)),
    ("pass-of", "pass of the ftp account: {}", "fTp9Wz3Lk"),
    ("token-key", "secret_key=sk-{}", LETTERS[20:50]),
    ("french-of", "Le mot de passe de la base est {}", "Cygne48Rt"),
]
UNSEEN_LOOKALIKES = [
    ("minutes", "password for guests: expires after 24h"),
    ("hashing", "hash of the password: bcrypt with cost 12"),
    ("policy", "password for admins is at least 16 characters long"),
    ("stored-where", "the password for CI is stored in GitHub secrets"),
    ("spanish-doc", "contraseña para todos: no la compartas nunca"),
    ("french-doc", "mot de passe pour les invités : voir le wiki"),
    ("german-doc", "Passwort für Neue: beim Admin holen"),
    ("field", "token for csrf = request.headers2"),
    ("call", "token for the session: createToken2()"),
    ("secret-file", "docker secret postgres-password-v2"),
    ("secret-version", "secret version 12 is active"),
    ("secret-commit", "secret scanning found 9f8e7d6c in the history"),
    ("login-routes", "login /auth/v2 / logout /auth/v2/out"),
    ("login-time", "login took 3.2s / 4.1s"),
    ("pass-rate", "pass rate of suite2: 98%"),
    ("second-pass", "second pass of the compiler: SSA2 form"),
    ("token-type", "token of type: Bearer/JWT2"),
    ("reset-link", "password for new users: sent by mail in step 2"),
    ("secret-uuid", "secret santa group 7b is full"),
    ("ticket", "password for jenkins: OPS-1234"),
]
