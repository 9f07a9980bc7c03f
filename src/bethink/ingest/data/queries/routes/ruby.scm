; Rails, in config/routes.rb. A setting named like a capture is a pattern for its text.

; namespace :admin do … end, scope "/api" do … end
((call method: (identifier) @verb arguments: (argument_list) @args block: (_)) @scope
  (#set! role "scope") (#set! verb "namespace|scope"))

; get "/health", to: "status#show"
((call method: (identifier) @verb arguments: (argument_list) @args) @place
  (#set! role "route") (#set! verb "get|post|put|patch|delete"))

; resources :orders
((call method: (identifier) @verb arguments: (argument_list . (simple_symbol) @handler) @args) @place
  (#set! role "route") (#set! verb "resources?"))
