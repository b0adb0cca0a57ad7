# C without comments and without what is inside string and character literals.
#
# Prints for each line: file TAB line number TAB class TAB code. The class is B for a
# blank line, C for a line with nothing but comment, K for a line with code. A line
# comment keeps its two slashes, so that a gate can refuse it, and loses its text.

FNR == 1 { in_comment = 0 }

{
    line = $0
    out = ""
    had_comment = in_comment
    n = length(line)
    i = 1
    while (i <= n) {
        two = substr(line, i, 2)
        c = substr(two, 1, 1)
        if (in_comment) {
            rest = index(substr(line, i), "*/")
            if (rest == 0)
                break
            in_comment = 0
            i += rest + 1
        } else if (two == "/*") {
            in_comment = had_comment = 1
            i += 2
        } else if (two == "//") {
            out = out "//"
            had_comment = 1
            break
        } else if (c == "\"" || c == "'") {
            out = out c
            for (i++; i <= n; i++) {
                d = substr(line, i, 1)
                if (d == "\\")
                    i++
                else if (d == c)
                    break
            }
            out = out c
            i++
        } else {
            out = out c
            i++
        }
    }
    sub(/[ \t]+$/, "", out)
    class = out != "" ? "K" : had_comment ? "C" : "B"
    print FILENAME "\t" FNR "\t" class "\t" out
}
