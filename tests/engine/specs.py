"""Specs in few words for the engine's tests."""

from workflows.spec.model import ActionStep, Agent, Spec, Step, VarDecl


def spec_of(*steps: Step, version: str = "1.1", vars: dict[str, VarDecl] | None = None) -> Spec:
    """A spec with these steps, or with one that thinks."""
    workflow = steps or (ActionStep(step="think", action="think"),)
    agent = Agent(id="clerk", name="A clerk", role="Clerk", goal="Handle the request.", workflow=workflow)
    return Spec(version=version, vars=vars or {}, agent=agent)
