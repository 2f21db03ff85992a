# bash completion for holdfast                                             -*- shell-script -*-

# Splits the line up to the cursor at white space into words; the last one is being typed. bash
# itself splits at colons too, which URLs and many lock names contain.
_holdfast_split()
{
    local line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    cword=$((${#words[@]} - 1))
}

# Finds the command, the store, the number of operands before the cursor, and the place of "--".
_holdfast_scan()
{
    local i
    for ((i = 1; i < cword; i++)); do
        case ${words[i]} in
            --store)
                store=(--store "${words[i + 1]-}")
                ((i++))
                ;;
            --store=*) store=("${words[i]}") ;;
            --wait | -w | --busy-exit | -E | --ttl | --grace | --on-loss | --max-runtime | \
                --leftover | --label | --pid | -p | --above | --token | -t | --issuer | --reason | --dialect | -d | \
                --table | --schema | --resource | --keep | --statements | --svg | --events | --metrics | --per | --at | --tz | \
                --slack | --start-by | --retries | --retry-after | --on-crash | --done-exit | --late | --slot | --slots | --lock | --at-least | --restart | --address | \
                --db | --name | --http | --parallel | --batch | --poll | --timeout | --attempts | --pause | --rate | --tail | --seed | --for | --workers | \
                --listen | --tokens | --new-token | --host | --max-clients | --max-waiters | --max-ttl | --max-wait)
                ((i++))
                ;;
            --)
                tail=$i
                return
                ;;
            -*) ;;
            *) if [[ -z $command ]]; then command=${words[i]}; else ((operands++)); fi ;;
        esac
    done
}

# Offers those lines of $1 that begin with the word being typed.
_holdfast_offer()
{
    local line known=''
    [[ $COMP_WORDBREAKS == *:* ]] && known=${cur%"${cur##*:}"}
    while IFS= read -r line; do
        if [[ -n $line && $line == "$cur"* ]]; then
            printf -v line %q "${line#"$known"}"
            COMPREPLY+=("$line")
        fi
    done <<<"$1"
}

_holdfast()
{
    local words cword
    _holdfast_split
    local cur=${words[cword]} prev=${words[cword - 1]}
    local commands='run once elect leader acquire keep renew release status list slots explain break doctor repair fence idem outbox serve trap torture odds help version'
    local command='' tail=0 operands=0 options='' store=()
    COMPREPLY=()
    _holdfast_scan

    if [[ $command =~ ^(run|once|elect|outbox)$ && $tail -gt 0 ]]; then
        if ((cword == tail + 1)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        fi
        return
    fi
    case $prev in
        --for) [[ $command == torture ]] && options='10s 1m 2m 10m' || options='efficiency correctness' ;;
        --on-loss) options='term kill warn' ;;
        --restart) options='always on-failure no' ;;
        --require) options='correctness nothing' ;;
        --leftover) options='wait term release' ;;
        --on-crash) options='rerun hold' ;;
        --per) options='10m 1h 6h 12h 1d 7d' ;;
        --at) options='00:00 03:00' ;;
        --tz) options="UTC $(cd /usr/share/zoneinfo 2>/dev/null && printf '%s ' [A-Z]*/*)" ;;
        --ttl | --wait | -w | --grace | --at-least | --max-runtime | --keep | --slack | --start-by | --retry-after | --late | --poll | --timeout | --max-ttl | --max-wait) options='1s 10s 30s 1m 5m 1h' ;;
        --store) options='file: redis:// rediss:// redis+unix:// redis+sentinel:// redlock:// etcd:// zookeeper:// postgres:// http:// https:// http+unix://' ;;
        --dialect | -d) options='postgres sqlite mariadb' ;;
        --statements) options='text json' ;;
        --db) options='postgres:// mariadb:// sqlite:' ;;
        --http) options='http:// https://' ;;
        --pause) options='1e-4 0.01% 1/10000' ;;
        --rate) options='10000/s 100/m 10/h' ;;
        --listen) options='unix: tcp:127.0.0.1:7070 tcp:[::1]:7070' ;;
        --svg | --events | --metrics | --fence | --tokens)
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
            ;;
        --busy-exit | -E | --address | --label | --pid | -p | --above | --token | -t | --issuer | --reason | --table | --schema | \
            --resource | --retries | --done-exit | --slot | --slots | --lock | --name | --parallel | --batch | --attempts | --tail | --seed | --workers | --new-token | --host | --max-clients | --max-waiters) return ;;
    esac
    if [[ -n $options ]]; then
        _holdfast_offer "${options// /$'\n'}"
        return
    fi
    case $command in
        '') options='--store --help --version' ;;
        run)
            options='--all --any --slots --slot --no-wait --wait --busy-exit --ttl --grace --on-loss --max-runtime --skip-ok
                --leftover --no-reenter --at-least --label --events --metrics --require --fence --db --help'
            ;;
        once)
            options='--per --at --tz --slack --start-by --retries --retry-after --on-crash --keep --output
                --done-exit --no-wait --wait --busy-exit --ttl --grace --on-loss --max-runtime --skip-ok
                --leftover --label --events --metrics --require --fence --db --show --history --check --late --clear --reason --slot
                --json --help'
            ;;
        elect) options='--all --any --slots --slot --restart --address --ttl --label --grace --on-loss --leftover --events --metrics
            --require --fence --db --help' ;;
        leader) options='--watch --json --help' ;;
        acquire) options='--all --any --slots --slot --no-wait --wait --busy-exit --ttl --label --json --require --fence --db --help' ;;
        keep) options='--pid --no-wait --wait --busy-exit --ttl --grace --on-loss --label --help' ;;
        renew) options='--ttl --help' ;;
        list) options='--json --flat --names --help' ;;
        slots) options='--json --help' ;;
        status) options='--json --held --free --help' ;;
        doctor) options='--for --fence --db --ttl --grace --json --help' ;;
        version) options='--json --help' ;;
        break) options='--token --reason --now --yes --help' ;;
        repair) options='--above --open --reason --help' ;;
        fence)
            options='--token --lock --issuer --wait --ttl --reason --json --db --dialect --table --schema --resource
                --key-column --per-row --down --last --no-transaction --statements --help'
            ;;
        idem) options='--dialect --schema --keep --down --no-transaction --statements --help' ;;
        outbox)
            options='--dialect --down --no-transaction --statements --schema --db --name --http --parallel --batch
                --poll --timeout --attempts --no-wait --wait --busy-exit --ttl --label --events --metrics
                --json --reason --help'
            ;;
        serve)
            options='--store --listen --tokens --new-token --host --max-clients --max-waiters --max-ttl --max-wait
                --watch --help'
            ;;
        trap) options='--store --ttl --svg --help' ;;
        explain) options='--watch --json --help' ;;
        torture) options='--for --freeze --kill --cut --ttl --workers --seed --svg --json --help' ;;
        odds) options='--ttl --pause --rate --tail --seed --svg --json --help' ;;
        release | help) options='--help' ;;
    esac
    if [[ $cur == -* ]]; then
        # shellcheck disable=SC2086 # a list of words
        _holdfast_offer "$(printf '%s\n' $options)"
    elif [[ -z $command ]]; then
        _holdfast_offer "${commands// /$'\n'}"
    elif [[ $command == help ]]; then
        _holdfast_offer "${commands// /$'\n'}"$'\nstores'
    elif [[ $command =~ ^(run|once|elect|leader|acquire|keep|renew|release|status|list|slots)$ ]] && ((operands == 0)); then
        _holdfast_offer "$(timeout 2 holdfast "${store[@]}" list --names -- "$cur" 2>/dev/null |
            head -n 500)"
    elif [[ $command == fence ]] && ((operands == 0)); then
        _holdfast_offer $'sql\nset\ndel\nscript\nwrite\nappend\nenter\nreset\nshow\ncheck'
    elif [[ $command == idem ]] && ((operands == 0)); then
        _holdfast_offer sql
    elif [[ $command == outbox ]] && ((operands == 0)); then
        _holdfast_offer $'sql\nrelay\nlist\nretry\ndrop'
    elif [[ $command == fence ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    elif [[ $command =~ ^(run|once|elect)$ ]]; then
        _holdfast_offer '--'
    fi
}

complete -F _holdfast holdfast
