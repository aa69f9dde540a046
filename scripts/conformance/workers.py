"""Cases shared out to processes. What takes its process down takes only its own case with it."""

import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading


def serve(anfora, chosen):
    """What a process does: reads cases, one a line, and writes how their steps (all if none is chosen) ended, one line each."""
    import cases
    import steps

    # Whatever a library prints goes to standard error, not between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        case = cases.Case(**json.loads(line))
        print(json.dumps(steps.do(anfora, case, chosen or steps.STEPS)), file=answers, flush=True)


class Worker:
    """A process that serves."""

    def __init__(self, anfora, steps, errors):
        self.command = [sys.executable, os.path.dirname(__file__), "--serve", anfora, *steps]
        self.errors = errors
        self.process = None

    def ask(self, case):
        """How the steps of a case ended; None if the process died of it."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
            )
        try:
            print(json.dumps(dataclasses.asdict(case)), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer:
            return json.loads(answer)
        self.close()
        return None

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def do_all(anfora, steps, cases, jobs, errors, done):
    """Has these steps (all if none) of every case done by one of `jobs` processes; `done` is called with each and how its steps ended, in any order."""
    waiting = queue.SimpleQueue()
    for case in cases:
        waiting.put(case)
    lock = threading.Lock()
    failures = []

    def work():
        worker = Worker(anfora, steps, errors)
        try:
            while True:
                try:
                    case = waiting.get_nowait()
                except queue.Empty:
                    return
                results = worker.ask(case)
                with lock:
                    done(case, results)
        except Exception as failure:
            failures.append(failure)
        finally:
            worker.close()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
