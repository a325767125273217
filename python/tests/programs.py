"""Runs Python in a process of its own, with the packages of this one."""

import os
import subprocess
import sys


def run_python(*arguments, cwd=None, **variables):
    """The finished process, with what it printed as text."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        **variables,
    }
    command = [sys.executable, "-W", "ignore", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True
    )
