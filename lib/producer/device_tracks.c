#include "producer/device_tracks.h"

#include <pthread.h>
#include <traceplane/record.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for those who add */
static struct tp_device_track_info tracks[TP_DEVICE_TRACKS_MAX];
static uint32_t n_tracks; /* stored with release once the track is there */

static uint32_t find(uint32_t from, uint32_t n, uint32_t device, uint32_t stream)
{
    for (uint32_t i = from; i < n; i++) {
        if (tracks[i].device == device && tracks[i].stream == stream)
            return i + 1;
    }
    return 0;
}

/* Under the lock. */
static uint32_t add(uint32_t device, uint32_t stream)
{
    uint32_t n = n_tracks;
    uint32_t first = n + 1;

    if (n == TP_DEVICE_TRACKS_MAX)
        return TP_TRACK_THREAD;
    for (uint32_t i = n; i > 0; i--) {
        if (tracks[i - 1].device == device)
            first = i;
    }
    tracks[n] = (struct tp_device_track_info){device, stream, first};
    __atomic_store_n(&n_tracks, n + 1, __ATOMIC_RELEASE);
    return n + 1;
}

uint32_t tp_device_track(uint32_t device, uint32_t stream)
{
    uint32_t seen = __atomic_load_n(&n_tracks, __ATOMIC_ACQUIRE);
    uint32_t number = find(0, seen, device, stream);

    if (number != 0)
        return number;
    pthread_mutex_lock(&lock);
    number = find(seen, n_tracks, device, stream);
    if (number == 0)
        number = add(device, stream);
    pthread_mutex_unlock(&lock);
    return number;
}

void tp_device_tracks_lock(void)
{
    pthread_mutex_lock(&lock);
}

void tp_device_tracks_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool tp_device_tracks_get(uint32_t number, struct tp_device_track_info *out)
{
    if (number - 1 >= __atomic_load_n(&n_tracks, __ATOMIC_ACQUIRE))
        return false;
    *out = tracks[number - 1];
    return true;
}
