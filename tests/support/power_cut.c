/* Preloaded into a process: whatever it has synced under $POWER_CUT_FOLDER is kept beside the file as it was at that
   moment, as NAME.synced. With $SYNC_TAKES (microseconds) a sync is as slow as on a disk of its kind. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void keep(int descriptor) {
    const char *folder = getenv("POWER_CUT_FOLDER");
    char link[64], path[PATH_MAX], copy[PATH_MAX + 16], whole[PATH_MAX + 8], block[1 << 16];
    struct stat status;
    if (!folder || fstat(descriptor, &status) || !S_ISREG(status.st_mode)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder))) return;
    snprintf(whole, sizeof whole, "%s.synced", path);
    snprintf(copy, sizeof copy, "%s.being-synced", path);
    int target = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    off_t at = 0;
    ssize_t got;
    while ((got = pread(descriptor, block, sizeof block, at)) > 0) {
        if (write(target, block, got) != got) abort();
        at += got;
    }
    close(target);
    rename(copy, whole);
}

static int sync_as(const char *name, int descriptor) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *takes = getenv("SYNC_TAKES");
    int result = real(descriptor);
    if (takes) usleep(atoi(takes));
    if (!result) keep(descriptor);
    return result;
}

int fsync(int descriptor) { return sync_as("fsync", descriptor); }
int fdatasync(int descriptor) { return sync_as("fdatasync", descriptor); }
