/*
 * device_tracks.h - the tracks of devices, by number.
 *
 * Behind tp_device_track() of the public header, whose contract is there. Tracks are
 * never forgotten. Private to the library; safe from any thread.
 */
#ifndef TP_PRODUCER_DEVICE_TRACKS_H
#define TP_PRODUCER_DEVICE_TRACKS_H

#include <stdbool.h>
#include <stdint.h>

#define TP_DEVICE_TRACKS_MAX 4095u

/* Plain data. */
struct tp_device_track_info {
    uint32_t device;
    uint32_t stream;
    uint32_t first; /* the smallest number of a track of the same device */
};

/* What a track is. Returns whether there is one of that number. Takes no lock. */
bool tp_device_tracks_get(uint32_t number, struct tp_device_track_info *out);

/* For fork(): nobody may add a track meanwhile. */
void tp_device_tracks_lock(void);
void tp_device_tracks_unlock(void);

#endif
