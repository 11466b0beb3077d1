#!/bin/sh
# Prints the Python to set up with: the one named by the argument, else the first that fits.
# Names every missing tool, and how to install it, on stderr.
set -u
wanted=${1:-}

missing=0
name_missing() { # what, Debian and Ubuntu command, macOS command
  missing=1
  printf 'Missing: %s\n  Debian, Ubuntu: %s\n  macOS:          %s\n' "$1" "$2" "$3" >&2
}

python=''
without_venv=''
unsupported=''
if [ -n "$wanted" ]; then # pyenv's shim does not run a version that is installed but not selected
  set -- "$wanted" "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/*/bin/"$wanted"
else
  set -- python3 python3.13 python3.12 python3.11
fi
for candidate in "$@"; do
  found=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
  case $found in
    3.11 | 3.12 | 3.13) ;;
    *) unsupported=$found && continue ;;
  esac
  if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
    python=$candidate
    break
  fi
  without_venv=$candidate
done
if [ -z "$python" ] && [ -n "$without_venv" ]; then
  version=$("$without_venv" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  name_missing "the venv module of Python $version" \
    "sudo apt-get install python$version-venv" "brew install python@$version"
elif [ -z "$python" ]; then
  case $wanted in
    python3.11 | python3.12 | python3.13)
      name_missing "$wanted" \
        "sudo apt-get install $wanted $wanted-venv" "brew install python@${wanted#python}" ;;
    *)
      name_missing "Python 3.11, 3.12 or 3.13${wanted:+ ($wanted: ${unsupported:-not found})}" \
        'sudo apt-get install python3 python3-venv' 'brew install python@3.13' ;;
  esac
fi

# shellcheck disable=SC2016 # the reader's shell expands it, not this one
java_home='$(brew --prefix openjdk@21)/libexec/openjdk.jdk/Contents/Home'
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9._]*\).*/\1/p')
major=${version%%.*}
if [ "${major:-0}" -lt 17 ]; then
  name_missing "Java 17 or newer ($java: ${version:-not found})" \
    'sudo apt-get install default-jre-headless' \
    "brew install openjdk@21 && export JAVA_HOME=\"$java_home\""
fi

[ "$missing" -eq 0 ] && command -v "$python"
