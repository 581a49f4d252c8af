"""Where this package lies: who asks whether a file is one of ours asks by it."""

import os

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
