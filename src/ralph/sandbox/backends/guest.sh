# What Ralph asks about the files of a sandbox that is a machine of its own. Runs in there, in the
# project, as: sh -c "$(cat guest.sh)" guest VERB [PATH [MODE]]. A path is in base64, since not
# every tool on the way passes all bytes on. 44: missing, 45: a link or no file, 46: a directory.
set -u
path=
if [ $# -gt 1 ]; then
    path=$(printf %s "$2" | base64 -d && printf x)
    path=${path%x}
fi

# Goes to the directory that holds the path, never through a link.
descend() {
    while :; do
        case $path in */*) ;; *) return ;; esac
        step=${path%%/*}
        path=${path#*/}
        [ ! -h "./$step" ] || exit 45
        [ -d "./$step" ] || [ "$1" != make ] || mkdir "./$step" || exit
        [ -d "./$step" ] || exit 44
        cd "./$step" || exit
    done
}

case $1 in
read)
    descend find
    [ ! -h "./$path" ] || exit 45
    [ ! -d "./$path" ] || exit 46
    [ -e "./$path" ] || exit 44
    [ -f "./$path" ] || exit 45
    exec cat "./$path"
    ;;
write)
    descend make
    mode=$3
    if [ ! -h "./$path" ]; then
        [ ! -d "./$path" ] || exit 46
        [ -n "$mode" ] || [ ! -f "./$path" ] || mode=$(stat -c %a "./$path")
    fi
    rm -f "./$path" && cat >"./$path" && chmod "${mode:-644}" "./$path"
    ;;
list)
    descend find
    [ ! -h "./$path" ] || exit 45
    [ -d "./$path" ] || exit 44
    cd "./$path" && exec find . -mindepth 1 -maxdepth 1 -printf '%f\0'
    ;;
delete)
    descend find
    [ -e "./$path" ] || [ -h "./$path" ] || exit 44
    rm -rf "./$path"
    ;;
look) exec find . -mindepth 1 -path ./.git -prune -o -printf '%y %m %U %G %s %i %T@ %C@ %P\0' ;;
look-all) exec find . -mindepth 1 -printf '%y %m %U %G %s %i %T@ %C@ %P\0' ;;
pack)
    # The order counts: --no-recursion holds for what comes after it.
    exec tar --create --file=- --format=gnu --hard-dereference --no-recursion \
        --null --verbatim-files-from --files-from=- 2>/dev/null
    ;;
unpack) exec tar --extract --preserve-permissions --file=- ;;
remove) exec xargs -0 -r rm -rf -- ;;
reset) git reset --quiet --hard "$path" -- && git clean --quiet -ffdx ;;
running) # ourselves first, then everything that runs: who it is, and since when
    echo $$
    exec ps -e -o pid=,lstart=
    ;;
has) command -v -- "$path" >/dev/null ;;
esac
