-- What people are asked to look at: memories that proved useful, and those that are hardly believed. Both are few among many.

CREATE INDEX memories_used ON memories(scope) WHERE usefulness <> 0 OR access_count > 0;
CREATE INDEX memories_doubted ON memories(scope, created_at) WHERE trust <= 1;
