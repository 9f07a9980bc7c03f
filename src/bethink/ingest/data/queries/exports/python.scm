; What a package gives to others: the names in __all__, and what its entry point imports.
((assignment left: (identifier) @list right: (_ (string (string_content) @name))) (#set! role "listed") (#set! list "__all__"))
((augmented_assignment left: (identifier) @list right: (_ (string (string_content) @name))) (#set! role "listed") (#set! list "__all__"))
((import_from_statement module_name: (_) @module name: (dotted_name) @name) (#set! role "imported"))
((import_from_statement module_name: (_) @module name: (aliased_import name: (_) @original alias: (_) @name)) (#set! role "imported"))
