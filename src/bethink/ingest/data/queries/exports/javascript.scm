; export { a as b } from "./x", export * from "./y", export * as z from "./z"
((export_statement (export_clause (export_specifier name: (_) @original alias: (_) @name)) source: (string)? @module) (#set! role "listed"))
((export_statement (export_clause (export_specifier name: (_) @name !alias)) source: (string)? @module) (#set! role "listed"))
((export_statement (namespace_export (_) @name) source: (string) @module) (#set! role "listed"))
((export_statement "*" source: (string) @module) (#set! role "everything"))
