#!/bin/sh
# choose_page.sh - prints docs/choose.md as a man page, on stdout. tests/cli/choose.t sees to it that
# man/holdfast-choose.7 is what this prints.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^.define HF_VERSION_STRING "\(.*\)"/\1/p' include/holdfast.h)

cat <<END
.TH HOLDFAST\\-CHOOSE 7 2026-11-18 "holdfast $version" "Miscellaneous"
.SH NAME
holdfast\\-choose \\- do you need a lock, and which one?
END
awk '
function text(line) { # one line of prose
    gsub(/\\/, "\\e", line)
    while (match(line, /\[[^]]*\]\([^)]*\)/)) # a link becomes its words
        line = substr(line, 1, RSTART - 1) substr(line, RSTART + 1, index(substr(line, RSTART), "]") - 2) substr(line, RSTART + RLENGTH)
    gsub(/-/, "\\-", line)
    while (match(line, /\*\*[^*]+\*\*/))
        line = substr(line, 1, RSTART - 1) "\\fB" substr(line, RSTART + 2, RLENGTH - 4) "\\fR" substr(line, RSTART + RLENGTH)
    while (match(line, /\*[^*]+\*/))
        line = substr(line, 1, RSTART - 1) "\\fI" substr(line, RSTART + 1, RLENGTH - 2) "\\fR" substr(line, RSTART + RLENGTH)
    while (match(line, /`[^`]+`/))
        line = substr(line, 1, RSTART - 1) "\\fB" substr(line, RSTART + 1, RLENGTH - 2) "\\fR" substr(line, RSTART + RLENGTH)
    if (line ~ /^[.\047]/) line = "\\&" line
    return line
}
function row(line,    cells, n, i) { # of the table: a paragraph with a heading
    n = split(line, cells, / *\| */)
    if (cells[2] ~ /^-+$/) return
    if (!heads++) { for (i = 2; i < n; i++) head[i] = cells[i]; return }
    print ".TP\n" text("If a double run " cells[2])
    for (i = 3; i < n; i++) print text(head[i] (i == 3 ? " " : ": ") cells[i] (cells[i] ~ /[.]$/ ? "" : ".")) (i < n - 1 ? "\n.br" : "")
}
/^# / { next }
/^<!-- expect/ { print ".PP\nprints"; next }
/^<!--/ { next }
/^```/ { code = !code; print code ? (fresh ? "" : ".PP\n") ".nf\n.RS" : ".RE\n.fi"; fresh = 0; next }
code { gsub(/\\/, "\\e"); gsub(/-/, "\\-"); if (/^[.\047]/) $0 = "\\&" $0; print; next }
/^## / { print ".SH \"" toupper(substr($0, 4)) "\""; fresh = 1; next }
/^\|/ { row($0); fresh = 0; next }
/^- / { print ".IP \\(bu 2\n" text(substr($0, 3)); fresh = 1; next }
/^ +[^ ]/ { sub(/^ +/, ""); print text($0); next }
/^$/ { empty = 1; next }
{ if (!begun++) print ".SH DESCRIPTION"; else if (empty && !fresh) print ".PP"; print text($0); empty = 0; fresh = 0 }
' docs/choose.md
cat <<'END'
.SH "SEE ALSO"
.BR holdfast (1),
.BR holdfast\-fence (1),
.BR holdfast\-idem (1),
.BR holdfast\-outbox (1),
.BR holdfast\-trap (1),
.BR holdfast\-odds (1),
.BR holdfast\-torture (1)
END
