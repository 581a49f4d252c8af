#!/bin/sh
grep -q needle "$1"
