; Flask, Quart, FastAPI, Starlette and Django. A setting named like a capture is a pattern for its text.

; app = FastAPI(), router = APIRouter(prefix="/users"), admin = Blueprint("admin", __name__, url_prefix="/admin")
((assignment left: (identifier) @name right: (call function: (_) @class arguments: (argument_list) @args))
  (#set! role "router") (#set! class "(?:\\w+\\.)?(?:FastAPI|APIRouter|Flask|Blueprint|Starlette|Quart)"))

; @router.get("/x") def handler()
((decorated_definition
  (decorator (call function: (attribute object: (_) @on attribute: (identifier) @verb) arguments: (argument_list) @args) @place)
  definition: (_ name: (identifier) @handler))
  (#set! role "route") (#set! verb "get|post|put|patch|delete|head|options|route|api_route|websocket"))

; app.add_url_rule("/x", view_func=handler)
((call function: (attribute object: (_) @on attribute: (identifier) @verb) arguments: (argument_list) @args) @place
  (#set! role "route") (#set! verb "add_url_rule|add_api_route|add_route|add_websocket_route"))

; app.include_router(users.router, prefix="/api"), app.register_blueprint(admin), app.mount("/api", other)
((call function: (attribute object: (_) @on attribute: (identifier) @verb) arguments: (argument_list) @args)
  (#set! role "mount") (#set! verb "include_router|register_blueprint|mount"))

; Route("/x", handler) and Mount("/api", routes=[…])
((call function: (identifier) @verb arguments: (argument_list) @args) @place
  (#set! role "route") (#set! verb "Route|WebSocketRoute"))
((call function: (identifier) @verb arguments: (argument_list) @args) @scope
  (#set! role "scope") (#set! verb "Mount"))

; urlpatterns = [path("cart/<int:id>/", view), path("shop/", include("shop.urls"))]; router.register("orders", OrderViewSet)
((call function: (identifier) @verb arguments: (argument_list) @args) @place
  (#set! role "route") (#set! verb "path|re_path|url"))
((call function: (identifier) @verb arguments: (argument_list . (string) . (call function: (identifier) @include
  arguments: (argument_list . [(string) @target (tuple . (string) @target)]))) @args)
  (#set! role "mount") (#set! verb "path|re_path|url") (#set! include "include"))
((call function: (attribute attribute: (identifier) @verb) arguments: (argument_list . (string) . (_) @view) @args) @place
  (#set! role "route") (#set! verb "register") (#set! view ".*View(?:Set)?"))
