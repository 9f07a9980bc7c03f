; pub use net::{Client, Server}; pub use net::Client as C; pub use net::Client;
((use_declaration (visibility_modifier) argument: (scoped_identifier name: (_) @name)) (#set! role "listed"))
((use_declaration (visibility_modifier) argument: (use_as_clause alias: (_) @name)) (#set! role "listed"))
((use_declaration (visibility_modifier) argument: (scoped_use_list list: (use_list (identifier) @name))) (#set! role "listed"))
