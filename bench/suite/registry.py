"""All tasks of the suite, by name. A task takes a system and a setting, and returns its measures and the cases behind them.

A counter takes these cases and the seed, and returns the measures again: so every number of the page can be recomputed from the raw results.
"""

import coding
import keeping
import shown
import tasks

TASKS = {**coding.TASKS, **keeping.TASKS, **shown.TASKS, **tasks.TASKS}
COUNTERS = {**coding.COUNTERS, **keeping.COUNTERS, **shown.COUNTERS, **tasks.COUNTERS}
