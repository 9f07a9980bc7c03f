"""All tasks of the suite, by name. A task takes a system and a setting, and returns its measures and the cases behind them."""

import coding
import keeping
import shown
import tasks

TASKS = {**coding.TASKS, **keeping.TASKS, **shown.TASKS, **tasks.TASKS}
