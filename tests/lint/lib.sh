# Sourced by the gates: which files they look at. A gate runs at the root of the tree.
# shellcheck shell=bash

# files c|h|any...: the files of those kinds that are, or would be, in git. Where git
# cannot tell (an unpacked archive, the self-test, a tree of another user), everything
# outside build/ and node_modules/.
all_files() {
    {
        { [ -e .git ] && git ls-files -co --exclude-standard 2>/dev/null; } ||
            find . -type f -not -path './build/*' -not -path './.git/*' \
                -not -path '*/node_modules/*' | sed 's|^\./||'
    } | sort | while IFS= read -r f; do [ -f "$f" ] && printf '%s\n' "$f"; done
}

files() {
    local kind pattern=''
    for kind; do
        case $kind in
        any) pattern+='|' ;;
        *) pattern+="|\\.$kind\$" ;;
        esac
    done
    all_files | grep -E "${pattern#|}" || true
}

# code FILE...: one line for each line of C: file, line number, class and code, parted by
# tabs. The class is B (blank), C (comment) or K (code); see code.awk.
code() {
    [ $# -eq 0 ] || awk -f "$lint_dir/code.awk" "$@"
}

# room FILE: sets room to the one that a source belongs to; tests for all that may see
# everything.
room() {
    case $1 in
    lib/*/*) room=${1#lib/} && room=${room%%/*} ;;
    api/* | server/* | cli/*) room=${1%%/*} ;;
    *) room=tests ;;
    esac
}

# Print what is on the input and fail if there is anything.
fail_on_any() {
    local found
    found=$(cat)
    [ -z "$found" ] && return 0
    printf '%s\n' "$found"
    return 1
}

lint_dir=$(dirname "${BASH_SOURCE[0]}")
lint_dir=$(cd "$lint_dir" && pwd)
