"""Messages and their contents, as JSON and as database rows, and their token counts. Does not need
Django.

PyPI has another package with the name chatmemory. If both packages are installed in the same
folder, the import of this module warns. It raises ImportError if the other package has replaced
`chatmemory/__init__.py`.
"""

import sys
import warnings
from os.path import dirname, exists, join

_OTHER = join(dirname(dirname(__file__)), "chatmemory.py")
_WHAT_TO_DO = (
    "PyPI's package 'chatmemory' is installed in the same folder as "
    "'django-chatmemory': each replaces files of the other. Remove both with pip "
    "uninstall, then install django-chatmemory again. The other package needs an "
    "environment of its own."
)


def _check_other_package() -> None:
    """Raise ImportError if the other package has replaced our `__init__.py`, and warn if it is
    installed but ours is there.

    Only the other package has the module chatmemory.chatmemory.
    """
    if not exists(_OTHER):
        return
    if not hasattr(sys.modules["chatmemory"], "__version__"):
        raise ImportError(_WHAT_TO_DO)
    warnings.warn(_WHAT_TO_DO, RuntimeWarning, stacklevel=2)


_check_other_package()
