"""Entering the fence of a table, as `holdfast fence sql` sets it up, through the drivers of three databases."""
from __future__ import annotations

import re
import sys
from typing import Any

from ._library import Invalid, Stale

# Each: enter, enter for a key, leave.
_POSTGRES = ('CALL holdfast_fence.enter(%s, %s)', 'CALL holdfast_fence.enter(%s, %s, %s)', None)
_SQLITE = ('INSERT INTO holdfast_enter (resource, token) VALUES (%s, %s)',
           'INSERT INTO holdfast_enter (resource, key, token) VALUES (%s, %s, %s)',
           'DELETE FROM holdfast_entered')
_MARIADB = ('CALL holdfast_enter(%s, %s)', 'CALL holdfast_enter_key(%s, %s, %s)', 'CALL holdfast_leave()')
_BY_MODULE = {'psycopg': _POSTGRES, 'psycopg2': _POSTGRES, 'sqlite3': _SQLITE, 'pymysql': _MARIADB,
              'MySQLdb': _MARIADB, 'mariadb': _MARIADB}


def _driver(cursor: Any) -> tuple[tuple[str, str, str | None], str]:
    """The statements, and how the driver writes a parameter. A cursor of the user's own class counts as
    the one it is made from."""
    for kind in type(cursor).__mro__:
        module = kind.__module__.partition('.')[0]
        if module in _BY_MODULE:
            style = getattr(sys.modules.get(module), 'paramstyle', 'format')
            return _BY_MODULE[module], '?' if style == 'qmark' else '%s'
    raise Invalid(f'enter knows cursors of {", ".join(_BY_MODULE)}, not {type(cursor).__module__}')


def enter(cursor: Any, resource: str, key: Any, token: int) -> None:
    statements, mark = _driver(cursor)
    parameters = (resource, token) if key is None else (resource, key, token)
    try:
        cursor.execute(statements[key is not None].replace('%s', mark), parameters)
    except Exception as error:
        state = getattr(error, 'sqlstate', None) or getattr(error, 'pgcode', None)
        if state == 'ZHF01' or re.search(r'holdfast stale|token \d+ is stale', str(error)):
            raise Stale(str(error)) from error
        raise


def leave(cursor: Any) -> None:
    statement = _driver(cursor)[0][2]
    if statement is not None:
        cursor.execute(statement)
