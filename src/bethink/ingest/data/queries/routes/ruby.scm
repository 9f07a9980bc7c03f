; Rails: blocks that add a prefix, and routes. Constraints, concerns and engines are not followed.

((call !receiver method: (identifier) @verb arguments: (argument_list)? @args block: (do_block)) @scope
  (#set! role "rails_block") (#set! verb "namespace|scope|resources|resource|collection"))
((call !receiver method: (identifier) @verb arguments: (argument_list) @args) @place
  (#set! role "rails_route") (#set! verb "get|post|put|patch|delete|match|root|resources|resource|mount"))
