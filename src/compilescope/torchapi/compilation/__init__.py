"""The compilation at work now, those that came before, and the settings that we change for one."""
