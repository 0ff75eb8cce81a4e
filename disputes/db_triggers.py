"""What the database itself refuses beyond the constraints of one table."""

from typing import Any

CRITICAL = "SELECT 1 FROM disputes_conflict WHERE id = NEW.conflict_id AND severity = 'critical'"
MESSAGE = "no policy rules on a critical conflict"
SQLITE = f"""
CREATE TRIGGER disputes_decision_policy BEFORE INSERT ON disputes_decision
WHEN NEW.authority = 'policy' AND EXISTS ({CRITICAL})
BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END
"""  # noqa: S608  (no value of anybody's is in it)
POSTGRES_FUNCTION = f"""
CREATE OR REPLACE FUNCTION steroids_policy_rules_not_on_critical() RETURNS trigger AS $$
BEGIN
    IF NEW.authority = 'policy' AND EXISTS ({CRITICAL}) THEN
        RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$ LANGUAGE plpgsql
"""  # noqa: S608
POSTGRES = """
CREATE TRIGGER disputes_decision_policy BEFORE INSERT ON disputes_decision
FOR EACH ROW EXECUTE FUNCTION steroids_policy_rules_not_on_critical()
"""


def install(schema_editor: Any) -> None:
    """Refuse a decision by policy on a critical conflict (ARB-7), on SQLite and PostgreSQL."""
    remove(schema_editor)
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRES_FUNCTION, params=None)
        schema_editor.execute(POSTGRES, params=None)
    else:
        schema_editor.execute(SQLITE, params=None)


def remove(schema_editor: Any) -> None:
    """Take the trigger away again."""
    on_table = " ON disputes_decision" if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP TRIGGER IF EXISTS disputes_decision_policy{on_table}", params=None)
