"""The same names as `astrocyte.errors`, under the module name that the API reference uses."""

from astrocyte.errors import *  # noqa: F403 - an alias module by design; errors defines the names
