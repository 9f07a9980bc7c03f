; Express, Koa, Fastify, Hono and Nest, for JavaScript and TypeScript. A setting named like a capture is a pattern for its text.

; const app = express(), const router = new Router({ prefix: "/v1" }), const r = require("express").Router()
((variable_declarator name: (identifier) @name
  value: [(call_expression function: (_) @class arguments: (arguments) @args) (new_expression constructor: (_) @class arguments: (arguments) @args)])
  (#set! role "router")
  (#set! class "(?:express|require\\(['\"]express['\"]\\))(?:\\.Router)?|(?:Koa)?Router|[fF]astify|(?:OpenAPI)?Hono|polka|restify\\.createServer"))
((variable_declarator name: (identifier) @name
  value: (await_expression (call_expression function: (_) @class arguments: (arguments) @args)))
  (#set! role "router") (#set! class "[fF]astify"))

; router.get("/x", handler); fastify.route({ method: "GET", url: "/x", handler })
((call_expression function: (member_expression object: (_) @on property: (property_identifier) @verb) arguments: (arguments) @args) @place
  (#set! role "route") (#set! verb "get|post|put|patch|delete|del|all|head|options|route"))

; app.use("/api", users), fastify.register(orders, { prefix: "/orders" }), app.route("/books", books)
((call_expression function: (member_expression object: (identifier) @on property: (property_identifier) @verb) arguments: (arguments) @args)
  (#set! role "mount") (#set! verb "use|register|route"))
