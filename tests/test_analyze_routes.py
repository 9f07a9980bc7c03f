"""Routes of the usual frameworks, from small projects as people write them; and what looks like a route and is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees import analysed, plant, told

from bethink.ingest.analyze import routes
from bethink.ingest.analyze.tree import Tree
from bethink.ingest.files import walk

FLASK = {
    "app.py": """
        from flask import Blueprint, Flask
        from shop.orders import orders

        app = Flask(__name__)
        admin = Blueprint("admin", __name__, url_prefix="/admin")

        @app.route("/")
        def home(): ...

        @app.route("/login", methods=["GET", "POST"])
        def login(): ...

        @admin.get("/users/<int:id>")
        def user(id): ...

        app.add_url_rule("/health", "health", health_check)
        app.register_blueprint(admin)
        app.register_blueprint(orders, url_prefix="/orders")
    """,
    "shop/orders.py": """
        from flask import Blueprint
        orders = Blueprint("orders", __name__)

        @orders.post("/<id>/cancel")
        def cancel(id): ...
    """,
}
FASTAPI = {
    "src/app/main.py": """
        from fastapi import FastAPI
        from app.api import users
        from app.api.items import router as items_router
        from .core import core

        app = FastAPI()
        app.include_router(users.router, prefix="/api/v1")
        app.include_router(items_router)
        app.include_router(core, prefix="/core")

        @app.get("/health")
        async def health(): ...
    """,
    "src/app/api/users.py": """
        from fastapi import APIRouter
        router = APIRouter(prefix="/users")

        @router.get("")
        async def list_users(): ...

        @router.post("", status_code=201)
        async def create_user(): ...

        @router.websocket("/feed")
        async def feed(): ...
    """,
    "src/app/api/items.py": """
        from fastapi import APIRouter
        router = APIRouter()

        @router.delete(path="/items/{id}")
        async def remove(id: int): ...

        @router.api_route("/items", methods=["GET", "HEAD"])
        async def items(): ...
    """,
    "src/app/core.py": """
        from fastapi import APIRouter
        core = APIRouter()
        inner = APIRouter(prefix="/inner")
        core.include_router(inner, prefix="/deep")

        @inner.patch("/x")
        def change(): ...
    """,
}
STARLETTE = {
    "web.py": """
        from starlette.applications import Starlette
        from starlette.routing import Mount, Route, WebSocketRoute

        app = Starlette(routes=[
            Route("/", home),
            Mount("/api", routes=[Route("/users", users, methods=["GET", "POST"]), Mount("/v2", routes=[Route("/jobs", endpoint=Jobs)])]),
            WebSocketRoute("/ws", socket),
        ])
    """
}
DJANGO = {
    "manage.py": "",
    "site/urls.py": """
        from django.urls import include, path, re_path

        urlpatterns = [
            path("admin/", admin.site.urls),
            path("shop/", include("shop.urls")),
            re_path(r"^archive/(?P<year>[0-9]{4})/$", views.archive),
        ]
    """,
    "shop/urls.py": """
        from django.urls import path
        from rest_framework.routers import DefaultRouter

        router = DefaultRouter()
        router.register("orders", views.OrderViewSet)
        urlpatterns = [
            path("", views.index),
            path("cart/<int:id>/", login_required(views.CartView.as_view()), name="cart"),
        ]
    """,
}
EXPRESS = {
    "package.json": '{"dependencies": {"express": "^4"}}',
    "src/server.js": """
        const express = require('express');
        const users = require('./routes/users');
        const app = express();
        // app.get('/commented', out);
        app.get('/health', (req, res) => res.send('ok'));
        app.use('/api/users', users);
        app.use('/api/teams', require('./routes/teams'));
        app.set('view engine', 'pug'); app.get('view engine');
    """,
    "src/routes/users.js": """
        const router = require('express').Router();
        router
          .get('/chained', ignored);
        router.get(
          '/:id',
          authenticate,
          controller.show,
        );
        router.post('/', asyncHandler(controller.create));
        router.route('/:id/avatar').put(upload.single('file'), avatars.set).delete(avatars.remove);
        module.exports = router;
    """,
    "src/routes/teams.js": """
        import { Router } from 'express';
        const teams = Router();
        teams.all('/', list);
        export default teams;
    """,
    "src/client.js": """
        axios.get('/api/users', config);
        const items = await api.get('/items');
        http.get('/x', callback); cache.get('/key', fallback);
    """,
}
FASTIFY = {
    "package.json": '{"dependencies": {"fastify": "5"}}',
    "index.ts": """
        import Fastify from 'fastify'
        import orders from './orders.js'
        const fastify = Fastify({ logger: true })
        fastify.get<{ Params: { id: string } }>('/ping', pong)
        fastify.route({ method: ['GET', 'HEAD'], url: '/status', handler: status })
        fastify.register(orders, { prefix: '/orders' })
    """,
    "orders.ts": """
        export default async function routes (fastify, options) {
          fastify.post('/', { schema }, createOrder)
        }
    """,
}
KOA = {
    "index.js": """
        const Router = require('@koa/router');
        const Koa = require('koa');
        const router = new Router({ prefix: '/v1' });
        router.get('/books', books.list).del('/never', seen);
        router.del('/books/:id', books.remove);
    """
}
NEST = {
    "src/main.ts": "const app = await NestFactory.create(AppModule);\napp.setGlobalPrefix('api');\n",
    "src/users/users.controller.ts": """
        import { Controller, Get, Post, Param } from '@nestjs/common';

        @Controller('users')
        export class UsersController {
          @Get()
          findAll() {}

          @Get(':id')
          @UseGuards(AuthGuard('jwt'))
          async findOne(@Param('id') id: string) {}

          @Post('import')
          import(@Body() body: Dto) {}
        }
    """,
}
NEXT = {
    "app/(shop)/api/orders/[id]/route.ts": "export async function GET(request: Request) {}\n\nexport const DELETE = async () => {}\n",
    "src/pages/api/hello.js": (
        "export default function handler(req, res) {\n  if (req.method === 'POST') return res.end();\n  if (req.method === 'GET') return\n}\n"
    ),
    "app/page.tsx": "export default function Page() {}",
}
SPRING = {
    "src/main/java/shop/OrderController.java": """
        package shop;

        @RestController
        @RequestMapping("/api/orders")
        public class OrderController {
            // @GetMapping("/old")
            @GetMapping
            public List<Order> all() { return service.all(); }

            @PostMapping(value = "/{id}/pay", produces = "application/json")
            @PreAuthorize("hasRole('USER')")
            public ResponseEntity<Order> pay(@PathVariable long id) { return null; }

            @RequestMapping(path = {"/a", "/b"}, method = RequestMethod.PUT)
            void both() {}
        }
    """,
}
RAILS = {
    "config/routes.rb": """
        Rails.application.routes.draw do
          root "home#index"
          # get "/old", to: "old#page"
          get "/about", to: "pages#about"
          post "login" => "sessions#create"
          resources :users, only: [:index, :show] do
            member do
              post :activate
            end
            resources :posts
            get :search, on: :collection
          end
          namespace :api do
            scope "v1" do
              resources :orders, except: [:destroy]
              delete "cache", to: "cache#clear"
            end
          end
          mount Sidekiq::Web => "/sidekiq"
        end
    """
}
NET_HTTP = {
    "main.go": """
        package main

        import "net/http"

        func main() {
            mux := http.NewServeMux()
            mux.HandleFunc("GET /users/{id}", getUser)
            http.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) {})
            mux.Handle("/static/", http.StripPrefix("/static/", files))
            resp, _ := http.Get("/not/a/route")
            // mux.HandleFunc("/old", old)
        }
    """
}
GIN = {
    "server.go": """
        package server

        import "github.com/gin-gonic/gin"

        func routes(r *gin.Engine) {
            r.GET("/ping", ping)
            api := r.Group("/api")
            v1 := api.Group("/v1", auth())
            v1.POST("/users", middleware, handlers.CreateUser)
            {
                v1.DELETE("/users/:id", handlers.DeleteUser)
            }
        }
    """
}
CHI = {
    "router.go": """
        package web

        import "github.com/go-chi/chi/v5"

        func New() chi.Router {
            r := chi.NewRouter()
            r.Get("/", home)
            r.Route("/articles", func(r chi.Router) {
                r.Get("/", listArticles)
                r.Route("/{id}", func(r chi.Router) {
                    r.Put("/", updateArticle)
                })
            })
            r.Delete("/after", after)
            return r
        }
    """
}
ECHO = {
    "e.go": """
        package e
        import "github.com/labstack/echo/v4"
        func f() {
            e := echo.New()
            g := e.Group("/admin")
            g.GET("/stats", stats)
            e.Any("/any", any)
        }
    """
}
GORILLA = {
    "r.go": """
        package r
        import "github.com/gorilla/mux"
        func f() {
            r := mux.NewRouter()
            s := r.PathPrefix("/products").Subrouter()
            s.HandleFunc("/{key}", show).Methods("GET", "PUT")
        }
    """
}

TABLE = [
    (
        FLASK,
        {
            ("GET", "/", "home", "app.py:7"),
            ("GET, POST", "/login", "login", "app.py:10"),
            ("GET", "/admin/users/<int:id>", "user", "app.py:13"),
            ("GET", "/health", "health_check", "app.py:16"),
            ("POST", "/orders/<id>/cancel", "cancel", "shop/orders.py:4"),
        },
    ),
    (
        FASTAPI,
        {
            ("GET", "/health", "health", "src/app/main.py:11"),
            ("GET", "/api/v1/users", "list_users", "src/app/api/users.py:4"),
            ("POST", "/api/v1/users", "create_user", "src/app/api/users.py:7"),
            ("WEBSOCKET", "/api/v1/users/feed", "feed", "src/app/api/users.py:10"),
            ("DELETE", "/items/{id}", "remove", "src/app/api/items.py:4"),
            ("GET, HEAD", "/items", "items", "src/app/api/items.py:7"),
            ("PATCH", "/core/deep/inner/x", "change", "src/app/core.py:6"),
        },
    ),
    (
        STARLETTE,
        {
            ("GET", "/", "home", "web.py:5"),
            ("GET, POST", "/api/users", "users", "web.py:6"),
            ("GET", "/api/v2/jobs", "Jobs", "web.py:6"),
            ("WEBSOCKET", "/ws", "socket", "web.py:7"),
        },
    ),
    (
        DJANGO,
        {
            ("", "/admin/", "admin.site.urls", "site/urls.py:4"),
            ("", "/archive/<year>/", "views.archive", "site/urls.py:6"),
            ("", "/shop/orders", "views.OrderViewSet", "shop/urls.py:5"),
            ("", "/shop", "views.index", "shop/urls.py:7"),
            ("", "/shop/cart/<int:id>/", "views.CartView", "shop/urls.py:8"),
        },
    ),
    (
        EXPRESS,
        {
            ("GET", "/health", "inline", "src/server.js:5"),
            ("GET", "/api/users/chained", "ignored", "src/routes/users.js:2"),
            ("GET", "/api/users/:id", "controller.show", "src/routes/users.js:4"),
            ("POST", "/api/users", "controller.create", "src/routes/users.js:9"),
            ("PUT", "/api/users/:id/avatar", "avatars.set", "src/routes/users.js:10"),
            ("DELETE", "/api/users/:id/avatar", "avatars.remove", "src/routes/users.js:10"),
            ("ANY", "/api/teams", "list", "src/routes/teams.js:3"),
        },
    ),
    (
        FASTIFY,
        {
            ("GET", "/ping", "pong", "index.ts:4"),
            ("GET, HEAD", "/status", "status", "index.ts:5"),
            ("POST", "/orders", "createOrder", "orders.ts:2"),
        },
    ),
    (
        KOA,
        {
            ("GET", "/v1/books", "books.list", "index.js:4"),
            ("DELETE", "/v1/books/:id", "books.remove", "index.js:5"),
        },
    ),
    (
        NEST,
        {
            ("GET", "/api/users", "findAll", "src/users/users.controller.ts:5"),
            ("GET", "/api/users/:id", "findOne", "src/users/users.controller.ts:8"),
            ("POST", "/api/users/import", "import", "src/users/users.controller.ts:12"),
        },
    ),
    (
        NEXT,
        {
            ("GET", "/api/orders/[id]", "GET", "app/(shop)/api/orders/[id]/route.ts:1"),
            ("DELETE", "/api/orders/[id]", "DELETE", "app/(shop)/api/orders/[id]/route.ts:3"),
            ("GET, POST", "/api/hello", "handler", "src/pages/api/hello.js:1"),
        },
    ),
    (
        SPRING,
        {
            (
                "GET",
                "/api/orders",
                "OrderController.all",
                "src/main/java/shop/OrderController.java:7",
            ),
            (
                "POST",
                "/api/orders/{id}/pay",
                "OrderController.pay",
                "src/main/java/shop/OrderController.java:10",
            ),
            (
                "PUT",
                "/api/orders/a",
                "OrderController.both",
                "src/main/java/shop/OrderController.java:14",
            ),
            (
                "PUT",
                "/api/orders/b",
                "OrderController.both",
                "src/main/java/shop/OrderController.java:14",
            ),
        },
    ),
    (
        RAILS,
        {
            ("GET", "/", "home#index", "config/routes.rb:2"),
            ("GET", "/about", "pages#about", "config/routes.rb:4"),
            ("POST", "/login", "sessions#create", "config/routes.rb:5"),
            ("REST", "/users", "users", "config/routes.rb:6"),
            ("POST", "/users/:id/activate", "activate", "config/routes.rb:8"),
            ("REST", "/users/:id/posts", "posts", "config/routes.rb:10"),
            ("GET", "/users/search", "search", "config/routes.rb:11"),
            ("REST", "/api/v1/orders", "orders", "config/routes.rb:15"),
            ("DELETE", "/api/v1/cache", "cache#clear", "config/routes.rb:16"),
            ("", "/sidekiq", "Sidekiq::Web", "config/routes.rb:19"),
        },
    ),
    (
        NET_HTTP,
        {
            ("GET", "/users/{id}", "getUser", "main.go:7"),
            ("", "/health", "inline", "main.go:8"),
            ("", "/static/", "files", "main.go:9"),
        },
    ),
    (
        GIN,
        {
            ("GET", "/ping", "ping", "server.go:6"),
            ("POST", "/api/v1/users", "handlers.CreateUser", "server.go:9"),
            ("DELETE", "/api/v1/users/:id", "handlers.DeleteUser", "server.go:11"),
        },
    ),
    (
        CHI,
        {
            ("GET", "/", "home", "router.go:7"),
            ("GET", "/articles", "listArticles", "router.go:9"),
            ("PUT", "/articles/{id}", "updateArticle", "router.go:11"),
            ("DELETE", "/after", "after", "router.go:14"),
        },
    ),
    (ECHO, {("GET", "/admin/stats", "stats", "e.go:6"), ("ANY", "/any", "any", "e.go:7")}),
    (GORILLA, {("GET, PUT", "/products/{key}", "show", "r.go:6")}),
]
NAMES = "Flask FastAPI Starlette Django Express Fastify Koa NestJS Next.js Spring Rails net/http Gin chi Echo gorilla/mux".split()


def found(root: Path) -> list[routes.Route]:
    return routes.find_routes(Tree(root, walk(root, root, None)))


@pytest.mark.parametrize(("files", "expected"), TABLE, ids=NAMES)
def test_each_framework_gives_its_routes_with_method_path_handler_and_line(
    tmp_path, files, expected
):
    plant(tmp_path, files)
    assert {
        (route.method, route.path, route.handler, f"{route.file}:{route.line}")
        for route in found(tmp_path)
    } == expected


@pytest.mark.parametrize(
    ("files", "name"), list(zip([files for files, _ in TABLE], NAMES, strict=True)), ids=NAMES
)
def test_the_framework_is_named(tmp_path, files, name):
    plant(tmp_path, files)
    assert {route.framework for route in found(tmp_path)} == {name}


@pytest.mark.parametrize(
    "files",
    [
        {
            "client.py": 'import requests\nrequests.get("/users", params)\n\n@mock.patch("app.users")\ndef test(): ...\n'
        },
        {
            "cache.py": 'from flask import Flask\nvalue = cache.get("/key", default)\n\n@patch("shop.views.order")\ndef f(): ...\n'
        },
        {
            "tests/test_app.py": 'from flask import Flask\napp = Flask("x")\n\n@app.route("/x")\ndef x(): ...\n'
        },
        {"examples/app.js": "const app = express();\napp.get('/x', handler);\n"},
        {"src/api.test.ts": "const app = express();\napp.get('/x', handler);\n"},
        {
            "web/api.ts": "import axios from 'axios';\nexport const list = () => client.get('/users', { params });\n"
        },
        {"comment.go": 'package a\n// import "net/http"\n/* mux.HandleFunc("/x", y) */\n'},
        {"broken.py": 'from fastapi import APIRouter\nrouter = APIRouter(\n@router.get("/x"\n'},
    ],
    ids=lambda files: next(iter(files)),
)
def test_what_only_looks_like_a_route_is_none(tmp_path, files):
    plant(tmp_path, files)
    assert found(tmp_path) == []


def test_a_handler_of_many_lines_still_belongs_to_its_route(tmp_path):
    body = "\n".join(f"  const x{number} = compute({number});" for number in range(400))
    plant(
        tmp_path,
        {
            "app.js": "const app = express();\napp.post('/big', async (req, res) => {\n"
            + body
            + "\n});\napp.get('/next', after);\n"
        },
    )
    assert [(route.method, route.path) for route in found(tmp_path)] == [
        ("POST", "/big"),
        ("GET", "/next"),
    ]


def test_routers_that_include_each_other_end(tmp_path):
    plant(
        tmp_path,
        {
            "a.py": """
        from fastapi import APIRouter
        a = APIRouter(prefix="/a")
        b = APIRouter(prefix="/b")
        a.include_router(b)
        b.include_router(a)

        @a.get("/x")
        def x(): ...
    """
        },
    )
    assert len(found(tmp_path)) == 1


def test_routes_are_told_in_one_sentence_per_file(tmp_path):
    plant(tmp_path, FLASK)
    passages, _ = analysed(tmp_path)
    (told_of,) = [
        passage for passage in passages["app.py"] if passage.tags == ("analysis", "api-route")
    ]
    assert told_of.content == (
        "The HTTP API in app.py (Flask) has GET / (home, line 7), GET, POST /login (login, line 10), "
        "GET /admin/users/<int:id> (user, line 13) and GET /health (health_check, line 16)."
    )
    assert told_of.kind == "architecture"
    assert told_of.lines == (7, 16)


def test_small_files_are_told_together_with_their_lines(tmp_path):
    plant(
        tmp_path,
        {
            f"app/api/thing{number}/route.ts": "export async function GET() {}\n"
            for number in range(9)
        },
    )
    (told_of,) = told(tmp_path, "api-route")
    assert "GET /api/thing0 (GET, app/api/thing0/route.ts:1)" in told_of.content
    assert "GET /api/thing8 (GET, app/api/thing8/route.ts:1)" in told_of.content


def test_a_large_interface_gets_an_overview_and_stays_few(tmp_path):
    files = {
        f"api/area{area}.py": f"from fastapi import APIRouter\nrouter = APIRouter(prefix='/area{area}')\n"
        + "".join(
            f"\n@router.get('/thing{number}')\ndef thing{number}(): ...\n" for number in range(40)
        )
        for area in range(20)
    }
    plant(tmp_path, files)
    passages = told(tmp_path, "api-route")
    assert len(passages) <= routes.MOST + 1
    (overview,) = [passage for passage in passages if "800 routes" in passage.content]
    assert "/area0 (40, api/area0.py)" in overview.content
    assert max(len(passage.content) for passage in passages) < 2_000
