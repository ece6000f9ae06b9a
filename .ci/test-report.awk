# Reads `go test -v`, shows what plain `go test` shows, and ends with the
# tests that were skipped and why. A package that failed is shown in full.
#
# go test -v writes "=== RUN NAME" (or NAME, CONT), then what the test says,
# indented, then its closing "--- SKIP: NAME" line, and last the line of the
# package: ok, FAIL or ? and a tab.

/^(ok|FAIL|\?) *\t/ {
    if ($1 == "FAIL") printf "%s", text
    print
    fflush()
    text = ""
    building = 0
    split("", said)
    next
}

# "# PACKAGE" begins the messages of the compiler or of vet.
/^# /  { building = 1 }
/^===/ { building = 0; test = $3; text = text $0 "\n"; next }
building || /^go: / { print; next }

/^ *--- SKIP: / { if (said[$3] != "") skipped[++count] = $3 ": " said[$3]; next }
/^ *--- PASS: / || /^PASS$/ || /^FAIL$/ { next }

{
    text = text $0 "\n"
    if (match($0, /^ +[^ ]+\.go:[0-9]+: /)) said[test] = substr($0, RLENGTH + 1)
}

END {
    printf "%s", text # of a package that never closed: the run was cut short
    print (count ? count : "no") " tests were skipped" (count ? ":" : "")
    for (i = 1; i <= count; i++) print "  " skipped[i]
}
