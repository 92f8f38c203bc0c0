# shellcheck shell=sh
# What the scripts of this folder share; they source it after `cd` to the top of the repository.

# Everything the scripts keep between runs is here.
viaduct_cache=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/viaduct

# viaduct_bazel COMMAND [ARGUMENT...]: Bazel with a disk cache that all scripts and clones share. VIADUCT_BAZEL
# replaces the word `bazel`, for start-up options. The compiler's version is in the cache's name, because Bazel
# does not see it.
viaduct_bazel() {
  if [ -z "${viaduct_disk_cache-}" ]; then
    compiler=$(dpkg-query -W -f '${Package} ${Version}\n' 'g++*' 'gcc*' 'libc6-dev' 'clang*' 2>/dev/null |
      sha256sum | cut -c 1-12)
    viaduct_disk_cache=$viaduct_cache/bazel-$compiler
    mkdir -p "$viaduct_disk_cache"
    for folder in "$viaduct_cache"/bazel-*; do
      [ "$folder" = "$viaduct_disk_cache" ] || rm -rf "$folder"
    done
    viaduct_prune "$viaduct_disk_cache" 12000000000
  fi
  viaduct_command=$1
  shift
  # shellcheck disable=SC2046
  case $viaduct_command in
    build | test | coverage) set -- $(viaduct_sandbox) --test_env=HOST_PACKAGES="$(viaduct_host)" "$@" ;;
  esac
  ${VIADUCT_BAZEL:-bazel} "$viaduct_command" --disk_cache="$viaduct_disk_cache" "$@" </dev/null
}

# viaduct_run COMMAND [ARGUMENT...]: runs a command, not a function, that ends with the script, by viaduct_ends, with all
# that it has started. Otherwise a shell that gets a signal would end and leave the command running.
viaduct_process=
viaduct_run() {
  setsid "$@" </dev/null &
  viaduct_process=$!
  wait "$viaduct_process"
  set -- $?
  viaduct_process=
  return "$1"
}
viaduct_ends() {
  trap 'viaduct_end; exit 130' INT
  trap 'viaduct_end; exit 143' TERM HUP
}
viaduct_end() {
  # Before setsid has run there is no such group yet.
  [ -z "$viaduct_process" ] || kill -- "-$viaduct_process" 2>/dev/null || kill "$viaduct_process" 2>/dev/null
  wait
}

# viaduct_sandbox: Bazel's option that puts its sandboxes into memory, if there is plenty of it and programs may run from
# there. Each sandbox has hundreds of links, and on a disk making them may take a quarter as long as compiling in it.
viaduct_sandbox() {
  [ ! -w /dev/shm ] || findmnt -no OPTIONS --target /dev/shm 2>/dev/null | grep -qw noexec ||
    df -Pk -t tmpfs /dev/shm 2>/dev/null | awk 'NR == 2 && $4 > 2000000 { print "--sandbox_base=/dev/shm" }'
}

# viaduct_host: a word for what is installed of tools/packages. A test that was skipped for want of a program runs again
# when the program is there; without this word Bazel, which sees no change, would repeat that it was skipped.
viaduct_host() {
  # shellcheck disable=SC2016
  awk '!/^#/ { print $2 }' tools/packages |
    xargs dpkg-query -W -f '${Package} ${Version} ${Status}\n' 2>/dev/null | sha256sum | cut -c 1-12
}

# viaduct_prune FOLDER BYTES: Bazel never shrinks its disk cache; one state in all configurations takes 4 GB. If the cache
# holds more than BYTES, removes what was not used for longest, as far as the file system tells (relatime: in days), until
# three quarters of BYTES are left; an entry whose files are gone is built again.
viaduct_prune() (
  cd "$1" || exit
  find . -type f -printf '%A@ %s %p\n' | sort -rn | awk -v limit="$2" '
    { total += $2; if (total > 0.75 * limit) old[++count] = $3 }
    END { if (total > limit) for (i = 1; i <= count; ++i) print old[i] }' | xargs -r rm -f
)
