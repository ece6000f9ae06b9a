# Reads `go test -v`, shows what plain `go test` shows, and ends with the
# tests that were skipped and why, and with those that failed and the line of
# a script at which they did. A package that failed is shown in full.
# With again=FILE, FILE gets a line for each package that failed: its name and
# its failed tests. None if it failed otherwise: a panic, a race.
#
# go test -v writes "=== RUN NAME" (or NAME, CONT), then what the test says,
# indented, then its closing "--- SKIP: NAME" line, and last the line of the
# package: ok, FAIL or ? and a tab.

# Lines are kept one by one: a string that grows is copied for each of them.
function keep() { text[++lines] = $0 }
function show(  i) { for (i = 1; i <= lines; i++) print text[i] }

/^(ok|FAIL|\?) *\t/ {
    if ($1 == "FAIL") show()
    print
    fflush()
    if ($1 == "FAIL" && again) print $2 (broken ? "" : tests) >> again
    lines = broken = 0
    tests = ""
    building = 0
    split("", said)
    next
}

# "# PACKAGE" begins the messages of the compiler or of vet.
/^# /  { building = 1 }
/^===/ { building = 0; test = $3; keep(); next }
building || /^go: / { print; next }

/^ *--- SKIP: / { if (said[$3] != "") skipped[++count] = $3 ": " said[$3]; next }
/^--- FAIL: / { tests = tests " " $3 }
/^panic: / || /DATA RACE/ { broken = 1 }
/^ *--- FAIL: / { failed[++bad] = $3 }
/^ +FAIL: [^ ]+:[0-9]+: / { sub(/^ +FAIL: /, ""); failed[++bad] = $0; $0 = "        FAIL: " $0 }
/^ *--- PASS: / || /^PASS$/ || /^FAIL$/ { next }

{
    keep()
    if (match($0, /^ +[^ ]+\.go:[0-9]+: /)) said[test] = substr($0, RLENGTH + 1)
}

END {
    show() # of a package that never closed: the run was cut short
    print (count ? count : "no") " tests were skipped" (count ? ":" : "")
    for (i = 1; i <= count; i++) print "  " skipped[i]
    if (bad) print "what failed:"
    for (i = 1; i <= bad; i++) print "  " failed[i]
}
