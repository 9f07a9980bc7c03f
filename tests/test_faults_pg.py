"""A PostgreSQL server that is killed while it is written to. `bench/faults_pg.py` does the same for longer."""

from __future__ import annotations

from killing import kill_and_look


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path):
    found = kill_and_look(kills=2, writers=2, seed=7, folder=tmp_path, between=(0.1, 0.3))
    assert found.lost + found.doubled + found.unfound + found.unknown == 0, found
    assert found.problems == []
    assert found.acknowledged > 8
