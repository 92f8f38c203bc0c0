# What the scripts beside this file share; they source it after `cd` to the top of the repository.

# Everything the scripts keep between runs is here.
viaduct_cache=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/viaduct

# viaduct_bazel COMMAND [ARGUMENT...]: Bazel with a disk cache that all scripts and clones share. VIADUCT_BAZEL
# replaces the word `bazel`, for start-up options. The compiler's version is in the cache's name, because Bazel
# does not see it; a cache over 8 GB is dropped, because Bazel never shrinks it.
viaduct_bazel() {
  if [ -z "${viaduct_disk_cache-}" ]; then
    compiler=$(dpkg-query -W -f '${Package} ${Version}\n' 'g++*' 'gcc*' 'libc6-dev' 'clang*' 2>/dev/null |
      sha256sum | cut -c 1-12)
    viaduct_disk_cache=$viaduct_cache/bazel-$compiler
    mkdir -p "$viaduct_disk_cache"
    for folder in "$viaduct_cache"/bazel-*; do
      if [ "$folder" != "$viaduct_disk_cache" ] || [ "$(du -sm "$folder" | cut -f 1)" -gt 8192 ]; then
        rm -rf "$folder"
      fi
    done
  fi
  viaduct_command=$1
  shift
  ${VIADUCT_BAZEL:-bazel} "$viaduct_command" --disk_cache="$viaduct_disk_cache" "$@" </dev/null
}
