# bash completion of thru
_thru() {
    local line kind=
    COMPREPLY=()
    while IFS= read -r line; do
        if [ -z "$kind" ]; then kind=$line; else COMPREPLY+=("$line"); fi
    done < <("${COMP_WORDS[0]}" VERB bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $kind in # bash 3.2 has no compopt
        files) compopt -o default 2>/dev/null ;;
        folders) compopt -o dirnames 2>/dev/null ;;
        more) compopt -o nospace 2>/dev/null ;;
    esac
}
complete -F _thru thru
