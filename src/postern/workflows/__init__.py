"""The words that a workflow file imports: ``from postern.workflows import workflow, respond, step, sleep``.

A workflow is a function that takes the event. The words mean the same wherever the function runs: in
the embedded engine, where steps, sleeps and the answer survive a crash, and in a rehearsal, where nothing
leaves the machine.
"""

from postern.workflows.language import Event, StepFailed, respond, sleep, step, workflow
from postern.workflows.rehearsal import Rehearsal, rehearse
from postern.workflows.scaffold import skeleton

__all__ = ["Event", "Rehearsal", "StepFailed", "rehearse", "respond", "skeleton", "sleep", "step", "workflow"]
