"""Secrets of many kinds and shapes, and texts that only look like one. Made up for these tests; parts are put together
at run time, so that no scanner mistakes this file for a leak. `{}` stands for the secret inside its text."""

from __future__ import annotations

import base64
import hashlib


def b64(seed: str, size: int = 48) -> str:
    return base64.b64encode(hashlib.shake_256(seed.encode()).digest(size)).decode()


def b64url(seed: str, size: int = 48) -> str:
    return (
        base64.urlsafe_b64encode(hashlib.shake_256(seed.encode()).digest(size)).decode().strip("=")
    )


def hexed(seed: str, size: int = 16) -> str:
    return hashlib.shake_256(seed.encode()).hexdigest(size)


def word(seed: str, size: int) -> str:
    return b64url(seed, size * 2).replace("-", "7").replace("_", "Q")[:size]


def base32(seed: str, size: int = 10) -> str:
    return base64.b32encode(hashlib.shake_256(seed.encode()).digest(size)).decode()


GITHUB = "ghp_" + word("github", 36)
AWS = "AKIA" + "Z7QRTMN5HHWFPKD2"
HEADER = "eyJ" + "hbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0"
JWE = f"{HEADER}..{b64url('iv', 12)}.{b64url('cipher', 60)}.{b64url('tag', 16)}"
JWE_KEY = (
    f"{HEADER}.{b64url('k', 256)}.{b64url('iv', 12)}.{b64url('cipher', 60)}.{b64url('tag', 16)}"
)
JWT_TEXT = f"{HEADER}.{b64url('no json here', 21)}.{b64url('signature', 32)}"
JWT_NONE = "eyJ" + "hbGciOiJub25lIn0" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + "."
BCRYPT = "$2y$" + "12$" + word("bcrypt", 53)
SHA512 = "$6$" + "rounds=5000$" + word("salt", 16) + "$" + word("shadow", 86)
APR1 = "$apr1$" + word("s", 8) + "$" + word("apr", 22)
ETHER = "0x" + hexed("ether", 32)
ZERO_WIDTH = GITHUB[:12] + "\u200b" + GITHUB[12:30] + "\u2060" + GITHUB[30:]

SECRETS: list[tuple[str, str]] = [
    # a vendor's token behind a word
    ("key-{}", GITHUB),
    ("prod-{}", AWS),
    ("deploy_{} is what CI uses", GITHUB),
    ("backup-{}.tar", "glpat-" + word("gitlab", 20)),
    ("token_{}", "sk-ant-api03-" + word("anthropic", 60)),
    ("old-{}", "xoxb-" + "123456789012-" + word("slack", 24)),
    ("stage_{}", "sk_" + "live_" + word("stripe", 24)),
    ("my-{}", "npm_" + word("npm", 36)),
    ("x-{}", "hf_" + word("hugging", 34)),
    ("curl -H 'X-Key: v1-{}'", "AIza" + word("google", 35)),
    # tokens with three and five parts
    ("session {}", JWE),
    ("cookie jwe={}", JWE_KEY),
    ("sent {} to the gateway", JWT_TEXT),
    ("{}", JWT_NONE),
    ("id_token={}", JWT_TEXT),
    # environment variables with ordinary or short values
    ("DB_PASSWORD={}", "sunshine"),
    ("DB_PASSWORD={}", "hunter2"),
    ("export PGPASSWORD={}", "winter"),
    ("MYSQL_ROOT_PASSWORD={}\nMYSQL_DATABASE=shop", "toor"),
    ("POSTGRES_PASSWORD='{}'", "letmein"),
    ("ENV ADMIN_PASSWORD={}", "monkey1"),
    ("docker run -e REDIS_PASSWORD={} redis", "dragon"),
    ("SMTP_PASS={}", "qwerty"),
    ("      - KEYCLOAK_ADMIN_PASSWORD={}", "keycloak9"),
    # XML
    ("<password>{}</password>", "hunter2"),
    ("<Password>{}</Password>", "Summer!"),
    ('<add key="DbPassword" value="{}" />', "orange42"),
    ('<property name="password" value="{}"/>', "tiger"),
    ("<server><username>ci</username><password>{}</password></server>", "deploy-me"),
    ("<api-key>{}</api-key>", hexed("xml")),
    # Java properties
    ("spring.datasource.password={}", "springtime"),
    ("db.password = {}", "oracle1"),
    ("javax.net.ssl.keyStorePassword={}", "storepw"),
    ("app.jwt.secret={}", word("jwt", 32)),
    ("mail.smtp.password: {}", "m4ilme"),
    # Terraform and quoted assignments
    ('  password = "{}"', "hunter2"),
    ('  master_password          = "{}"', "WinterIsHere"),
    ('admin_password = "{}"', "s3cret"),
    ('variable "db_password" {{\n  default = "{}"\n}}', "terraform1"),
    ("'password' => '{}',", "laravel"),
    # YAML blocks
    ("password: >-\n  {}\nhost: db", "block5calar"),
    ("password: |\n    {}\n", "hunter2"),
    ("db:\n  password: {}\n  host: x", "hunter2"),
    ("stringData:\n  password: {}", "t0psecret"),
    # tables
    ("| user | password |\n|---|---|\n| admin | {} |", "orchid"),
    ("| Host | Login | Passwort |\n| --- | --- | --- |\n| db1 | root | {} |", "blume7"),
    ("user,password\nalice,{}", "wonderland"),
    ("name;email;password\nbob;bob@shop.test;{}", "builder!"),
    ("service\tpassword\nmail\t{}", "postman"),
    # files of passwords
    ("db.shop.test:5432:shop:app:{}", "pgpassword"),
    ("*:*:*:postgres:{}", "elephant"),
    ("admin:{}", APR1),
    ("web:{}", BCRYPT),
    ("dev:{{SHA}}{}", b64("sha", 20)),
    ("root:{}:19234:0:99999:7:::", SHA512),
    ("machine api.shop.test\n  login ci\n  password {}", "netrcpass"),
    # headers
    ("Cookie: session={}; theme=dark", word("cookie", 32)),
    ("cookie: sid={}", "s%3A" + word("sid", 40)),
    ("Set-Cookie: auth={}; Path=/; HttpOnly", word("set", 30)),
    ("-H 'Cookie: connect.sid={}'", word("connect", 30)),
    ("X-Auth-Token: {}", hexed("auth")),
    ("Proxy-Authorization: Basic {}", "YWRtaW46aHVudGVyMg=="),
    ('Authorization: Digest username="a", response="{}"', hexed("digest")),
    # one-time passwords
    ("otpauth://totp/Shop:alice?secret={}&issuer=Shop", base32("totp")),
    ("TOTP seed: {}", base32("seed")),
    ("2FA secret {}", base32("2fa", 20)),
    ("the authenticator key is {}", "JBSW Y3DP EHPK 3PXP"),
    ("recovery code: {}", "8kd2-9fqz-m4x7"),
    # passphrases
    ("passphrase: {}", "correct horse battery staple"),
    ('ssh key passphrase = "{}"', "purple monkey dishwasher lamp"),
    ("The passphrase is {}.", "velvet anchor tundra mosaic"),
    ("password: {}", "correct-horse-battery-staple"),
    (
        "seed phrase: {}",
        "ripple noble oxygen castle velvet hunt orbit dune lizard maple quiz tornado",
    ),
    (
        "mnemonic = '{}'",
        "ripple noble oxygen castle velvet hunt orbit dune lizard maple quiz tornado",
    ),
    # told in prose
    ("the wifi password is {}", "sunflower"),
    ("The Wi-Fi password is {}.", "gast2024"),
    ("WLAN-Passwort: {}", "kaffee42"),
    ("his password is '{}'", "buttercup"),
    ("the root password was {} until May", "toor123"),
    ("log in with admin and password {}", "Winter2024"),
    ("Das Passwort lautet {}", "Sommer24"),
    ("the PIN is {}", "493817"),
    ("username: deploy, password: {}", "ship1t"),
    # private keys
    ("private key {}", ETHER),
    ("PRIVATE_KEY={}", ETHER),
    ('privateKey: "{}"', hexed("bare", 32)),
    ("--private-key {}", ETHER),
    ("wallet private key is {}", ETHER),
    # data source names
    ("https://{}@o4501.ingest.sentry.io/4507", hexed("sentry")),
    ("shop:{}@tcp(db:3306)/shop?parseTime=true", "gopher"),
    ("host=db user=app password={} dbname=shop", "libpq"),
    ("Server=db;Database=shop;User Id=sa;Pwd={};", "sapass"),
    ("jdbc:mysql://db/shop?user=app&password={}", "jdbcpw"),
    ("mongodb+srv://app:{}@cluster0.abc.mongodb.net", "mongo"),
    ("Driver={{ODBC}};UID=sa;PWD={};", "odbc1"),
    ("clickhouse-client --user app --password {} --query x", "house"),
    ("mysql:host=db;dbname=shop;password={}", "pdopass"),
    # hidden characters
    ("token {} end", ZERO_WIDTH),
    ("{}", AWS[:8] + "\u200d" + AWS[8:]),
    ("password=Tr0ub\u200b{}", "4dor&3xyz"),
    # words that placeholders have, too
    ("password: {}", "Default!2024x"),
    ("DB_PASSWORD={}", "my-example#Pa55"),
    ("password = '{}'", "your$Secret99"),
    ("ADMIN_PASSWORD={}", "Sample!Pass7"),
    ("password: {}", "todo&Fix1t!"),
    # a few more shapes
    ("{}", "dop_v1_" + hexed("do", 32)),
    ("client_secret: {}", "abc8Q~" + word("azure", 34)),
    ("openssl enc -pass pass:{}", "opensesame"),
    ("zip -P {} a.zip a", "zippity"),
    ("ldapsearch -D cn=admin -w {} -b dc=x", "directory"),
    ("psql 'postgresql://app@db/shop?password={}'", "urlpw"),
    ("ansible_become_pass: {}", "become1"),
    ("net user bob {} /add", "Wint3rfell"),
    ("echo {} | sudo -S ls", "rootpw1"),
    ("credentials: bob / {}", "Wint3rfell"),
    ("AccountKey={}==;", b64("account", 64).rstrip("=")),
    # short and ordinary values in the files of compositions, Terraform and XML
    ('DB_PASSWORD="{}"', "river"),
    ("environment:\n  MYSQL_PASSWORD: {}\n", "walnut"),
    ("spring.mail.password: {}", "fernleaf"),
    ('db_password = "{}"', "mango"),
    ('secret_string = "{}"', "T0psecret99"),
    ("<password><![CDATA[{}]]></password>", "cedar8"),
    ('<entry key="db.password">{}</entry>', "hazel"),
    ("The logins:\nuser,password\nroot,{}", "poppy"),
    ("db.shop.test:5432:shop:app:{}", "a\\:bc"),
    ("oracle: app/{}@//db:1521/XE", "badger7"),
    ("new Wallet('{}')", ETHER),
    ('ssh key passphrase: "{}"', "Olive Barn Kettle Snow"),
    ("the passphrase for the backup is {}", "lemon tractor window seven"),
    ("<passphrase>{}</passphrase>", "lemon tractor window seven"),
    ("wifi pw is {}", "strawberry1"),
    ("{}", GITHUB[:14] + "\u2063" + GITHUB[14:]),
    ("{}", GITHUB[:14] + "\u200e" + GITHUB[14:]),
    ("DB_PASSWORD={}", "default" + "Pw2024"),
    ("password=example-{}", "Tango42!"),
    ("api_password: {}", "yourMama1986"),
    # small letters around the words of placeholders
    ("DB_PASSWORD={}", "example-tango42"),
    ("password: {}", "defaultharbour77"),
    ("api_secret = '{}'", "example" + word("own", 14) + "7a8b9"),
    ("admin password is {}", "your4Castle!"),
    ("password = '{}'", "sample_otter1987"),
    # several words of a network
    ("the wifi password is {}", "blue harbour"),
    ("the guest wifi passphrase is {}", "green apple"),
    ("wifi password: {}", "silver lantern"),
    ('The WLAN password is "{}".', "Roter Drache"),
    ("wifi pw: {}", "tired-otter-lamp"),
    ("password: >-\n  {}\nuser: anna", "correct horse staple battery"),
    # traditional hashes, seeds and keys of wallets
    (".htpasswd:\nmaria:{}", "rl3Kq9xZ0aBcs"),
    ("htpasswd -d gave tom:{}", "ab.Yz7/kQ2mNo"),
    ("2fa seed {}", base32("lower").lower()),
    ("TOTP: {}", "jbsw y3dp ehpk 3pxp"),
    ("MFA key {}", "gezd gnbv gy3t qojq"),
    ("authenticator secret={}", base32("small", 20).lower()),
    ("key: {}", ETHER),
    ("  - key = '{}'", ETHER),
    ("deployer key: {}", ETHER),
]

LOOKALIKES: list[str] = [
    "cache-key-" + hexed("cache"),
    "cache_key_" + hexed("etag", 20),
    "the SHA is " + hexed("sha", 20),
    "tx 0x" + hexed("transaction", 32) + " was mined",
    "contract 0x" + hexed("contract", 20),
    "keccak256 0x" + hexed("keccak", 32),
    "public key 0x" + hexed("public", 32),
    "block hash: 0x" + hexed("block", 32),
    "DB_PASSWORD=${DB_PASSWORD}",
    "DB_PASSWORD=",
    "DB_PASSWORD=$1",
    "MYSQL_ALLOW_EMPTY_PASSWORD=yes",
    "RESET_PASSWORD=true",
    "SHOW_PASSWORD=false",
    "DB_PASSWORD=<your password>",
    "DB_PASSWORD=changeme",
    "DB_PASSWORD=********",
    "DB_PASSWORD=your_password_here",
    "POSTGRES_PASSWORD_FILE=/run/secrets/db",
    "PASSWORD_MIN_LENGTH=12",
    "<password></password>",
    "<password>${db.password}</password>",
    "<password>{{ password }}</password>",
    '<input type="password" name="password" id="password">',
    '<label for="password">Password</label>',
    '<xs:element name="password" type="xs:string"/>',
    '<property name="password" ref="secretBean"/>',
    "db.password=${DB_PASSWORD:}",
    "spring.datasource.password=@db.password@",
    "password = var.db_password",
    "password = random_password.master.result",
    'password = data.vault_generic_secret.db.data["password"]',
    'variable "db_password" {\n  type = string\n  sensitive = true\n}',
    "'password' => 'required|min:8',",
    '"password": "Password"',
    '"password": "Passwort"',
    '"password": "string"',
    '"password": null',
    "password: string;",
    "password: hidden",
    "password: Option<String>",
    "password: >-\n  {{ vault_password }}",
    "password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256",
    "| field | type | password |\n|---|---|---|\n| name | string | no |",
    "| setting | meaning |\n|---|---|\n| password | how to log in |",
    "| option | password |\n|---|---|\n| default | required |",
    "user,password,email\nWe ask for all three.",
    "name,type,required\npassword,string,yes",
    "main.c:120:5:error: expected a bracket",
    "12:30:45:00:11",
    "a:b:c:d:e",
    "image: registry.test:5000:team:app",
    "Cookie: a small file that a site keeps",
    "Cookie: theme=dark; lang=en",
    "Set-Cookie: consent=true; Path=/",
    "We send the cookie: name, path and domain.",
    "TOTP codes are six digits long.",
    "the secret ingredient is butter",
    "TOTP secret is stored encrypted",
    "2FA is required for ADMINISTRATORS",
    "passphrase: the words that you type to unlock the key",
    "The passphrase is asked for once per session.",
    "passphrase: string",
    "the wifi password is on the fridge",
    "the wifi password is required",
    "The password is wrong.",
    "the password is not stored",
    "the password is optional",
    "his password is expired",
    "password is case-sensitive",
    "password is sha256-hashed",
    "The PIN is asked for twice.",
    "the private key is in the vault",
    "private key: see 1Password",
    "the private key never leaves the device",
    "https://sentry.io/organizations/shop/issues/4507",
    "connect(host=host, password=password)",
    "connect(user=user, password=pw, host=host)",
    "Server=db;Database=shop;Trusted_Connection=True;",
    "jdbc:mysql://db/shop?user=app&password=${PW}",
    "def f(password=None, token=None):",
    "https://shop.test/reset?password=",
    "eyJhbGciOi is how a JWT begins",
    "eyJ.a.b",
    "ghp_ is the prefix of a token",
    "tokens like ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "a prod-AKIA style name",
    "zip -P is not safe",
    "net user shows the accounts",
    "login.password_reset_expires_at = 3600",
    "the token bucket holds 500 tokens",
    "password_hash = bcrypt.hashpw(password, salt)",
    "if password != confirm: raise ValueError('passwords differ')",
    "secret = secrets.token_urlsafe(32)",
    "const { password, ...rest } = user;",
    "SELECT password FROM users WHERE id = 7",
    "password VARCHAR(255) NOT NULL",
    "ALTER TABLE users ADD COLUMN password_digest text",
    "the password field has the class password-input-field",
    "grant_type=password&scope=read",
    "sshpass and expect are not installed",
    "key: value",
    "primary key: id, foreign key: user_id",
    "token: bearer",
    "credentials: include",
    "credentials: same-origin",
    "auth: token / session / none",
    "pass: 12, fail: 3",
    "PASS=12 FAIL=3",
    "the seed phrase has twelve words",
    "mnemonic: easy to remember names for opcodes",
    "recovery codes are shown once",
    "sudo -S reads from stdin",
    "DB_PASSWORD: the one of the database",
    "DB_PASSWORD: required",
    "password: your-256-bit-secret",
    "password = 'yourPassword12'",
    "DB_PASSWORD=exampleToken42",
    '<entry key="db.password">${DB_PASSWORD}</entry>',
    "see docs/setup@//host and app/page@//x",
    "passphrase for the key is asked for when it starts",
    "the wifi key is on the fridge",
    'password_field = "email"',
    "These are sent:\nuser,password,email\nWe ask for all three.",
    "DB_PASSWORD=example-password-123",
    "password: default-value-12",
    "password = 'your-token-42'",
    "the wifi password is twelve characters",
    "the wifi password is very long",
    "the wifi password is case sensitive",
    "the wifi password is changed monthly",
    "wifi password: see the wiki",
    "wifi password: ask Anna",
    "totp needs sha2 with this step",
    "The wifi passphrase is printed below the router.",
    "password: >-\n  the one that you were given\nuser: anna",
    "htpasswd -B makes bcrypt, see man:htpasswd",
    "Run htpasswd with AuthUserFile:conf/htpasswd",
    "2fa works with any authenticator app that can scan",
    "the totp module is called onetimepasswordcheck",
    "mfa must also work when they have lost their phone",
    "storage key: 0x" + hexed("slot", 32),
    "cache key: 0x" + hexed("cached", 32),
    "key: 0x1F",
]
