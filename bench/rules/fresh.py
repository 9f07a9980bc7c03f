"""Rules that were written before the code and tried at the end."""

from case import RuleCase

RULES = (
    RuleCase("please never use sed to change YAML, use yq", ("sed -i s/a/b/ deploy/app.yaml", "sed -i '' -e 's/1/2/' .github/workflows/ci.yml"), ("sed -n 1,20p src/a.ts", "yq .a deploy/app.yaml")),
    RuleCase("PRs go against develop, never against main", ("gh pr create --base main --title x",), ("gh pr create --base develop --title x", "git checkout main")),
    RuleCase("yarn only. No npm in this repo", ("npm install", "npm test"), ("yarn install", "yarn test")),
    RuleCase("always run make fmt before you commit", ("git commit -am 'fix'",), ("git status", "make build")),
    RuleCase("Files in src/generated/ come from the schema, don't change them", ("Edit: src/generated/types.ts", "Write: src/generated/api.ts"), ("Edit: src/types.ts", "Edit: scripts/generated.ts")),
    RuleCase("do not use --no-verify, ever", ("git commit --no-verify -m x", "git push --no-verify"), ("git commit -m x", "npm run verify")),
    RuleCase("Use bun test instead of jest", ("npx jest", "jest src/cart.test.ts", "npx jest --watch"), ("bun test", "bun install")),
    RuleCase("config/production.json must not be edited without a ticket", ("Edit: config/production.json",), ("Edit: config/development.json", "npm run production"), "decision"),
    RuleCase("Squash commits before merging a pull request", ("gh pr merge 41 --merge",), ("gh pr view 41", "git log --merges")),
    RuleCase("never add dependencies without asking me first", ("npm install lodash", "pnpm add zod", "cargo add serde", "pip install rich"), ("npm run build", "cargo build")),
    RuleCase("Don't push on Friday afternoons", ("git push origin main",), ("git pull", "git stash push")),
    RuleCase("Cargo.lock is committed; never delete it", ("Edit: Cargo.lock", "rm Cargo.lock"), ("Edit: Cargo.toml", "cargo build")),
    RuleCase("poetry is dead here, use uv", ("poetry install", "poetry add rich", "poetry run pytest"), ("uv sync", "uv add rich")),
    RuleCase("Never modify files in vendor/, send patches upstream", ("Edit: vendor/github.com/x/y.go",), ("Edit: internal/vendor.go", "go mod vendor"), "decision"),
    RuleCase("kubectl apply is forbidden: everything goes through Argo", ("kubectl apply -f k8s/app.yaml",), ("kubectl get pods", "kubectl logs app"), "decision"),
    RuleCase("Use rg rather than grep", ("grep -rn total src", "grep -n x a.txt"), ("rg -n total src", "git grep x")),
    RuleCase("Don't `git stash`, make a worktree instead", ("git stash", "git stash pop"), ("git worktree add ../x", "git status")),
    RuleCase("Snapshots in __snapshots__/ are only updated with npm run test:update", ("Edit: src/__snapshots__/Cart.snap", "Write: web/__snapshots__/a.snap"), ("Edit: src/Cart.tsx",), "gotcha"),
    RuleCase("Secrets live in .env.local and must never be printed", ("cat .env.local", "Read: .env.local"), ("cat .env.example", "Edit: src/secrets.ts")),
    RuleCase("*.min.js files are build output, edit the sources", ("Edit: public/app.min.js",), ("Edit: public/app.js",), "gotcha"),
    RuleCase("Run the type checker before every commit", ("git commit -m 'feat: cart'",), ("git add src/a.ts", "tsc --noEmit")),
    RuleCase("I prefer merge commits, never rebase shared branches", ("git rebase main", "git pull --rebase"), ("git merge main",)),
    RuleCase("Only Ada releases: never run npm publish", ("npm publish", "npm publish --tag next"), ("npm pack", "npm run build"), "decision"),
    RuleCase("Keep functions short and names plain", (), ("Edit: src/cart.ts", "git commit -m x")),
)  # fmt: skip
