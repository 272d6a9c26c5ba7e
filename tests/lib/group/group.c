/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: their members and names, and how they outlive other objects. */
#include "config.h"

#include "tests/lib/work/ranks.h"

/* Sums the world ranks of the group, by a collective on it. */
static int sum_of_ranks(rank_t *self, dscomm_group_t *group)
{
    int32_t mine = self->rank, sum = -1;

    CHECK(self, sum_one(group, &mine, &sum, NULL) == DSCOMM_OK);
    return sum;
}

static void new_groups(rank_t *self)
{
    const int odd[] = {3, 1}, first[] = {0};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = self->world, *lone = self->world;
    uint64_t number;
    int other;

    attr.name = "odd ones";
    attr.timeout_ms = 1234;
    CHECK(self,
          dscomm_group_new(self->world, odd, 2, &attr, &group) == DSCOMM_OK);
    CHECK(self, (self->rank % 2 == 1) == (group != NULL));
    CHECK(self,
          dscomm_group_new(self->world, first, 1, NULL, &lone) == DSCOMM_OK);
    CHECK(self, (self->rank == 0) == (lone != NULL));
    if (lone) {
        CHECK(self, !strcmp(dscomm_group_backend(lone), "self"));
        CHECK(self, !strcmp(dscomm_group_name(lone), "world/2"));
        CHECK(self, sum_of_ranks(self, lone) == 0);
        CHECK(self, dscomm_group_from_global(lone, 1, &other) ==
                        DSCOMM_ERR_NOT_FOUND);
    }
    if (group) {
        CHECK(self, dscomm_group_size(group) == 2);
        CHECK(self, dscomm_group_rank(group) == (self->rank == 3 ? 0 : 1));
        CHECK(self, !strcmp(dscomm_group_name(group), "odd ones"));
        CHECK(self, !strcmp(dscomm_group_backend(group), "thread"));
        CHECK(self, dscomm_group_timeout(group) == 1234);
        CHECK(self, !dscomm_group_to_global(group, 0, &other) && other == 3);
        CHECK(self, !dscomm_group_from_global(group, 1, &other) && other == 1);
        CHECK(self, sum_of_ranks(self, group) == 4);
        CHECK(self, dscomm_group_sequence(group) == 1);
    }
    number = dscomm_group_number(self->world);
    CHECK(self, number > 0 && dscomm_group_number(NULL) == 0);
    CHECK(self, !group || dscomm_group_number(group) > number);
    CHECK(self, !lone || dscomm_group_number(lone) != number);
    CHECK(self, dscomm_group_free(group) == DSCOMM_OK);
    CHECK(self, dscomm_group_free(lone) == DSCOMM_OK);
}

/* In reverse order by key; rank 4 joins no group. */
static void split(rank_t *self)
{
    int color = self->rank == 4 ? DSCOMM_NO_COLOR : self->rank / 2;
    dscomm_group_t *group = self->world;
    int partner = self->rank ^ 1;

    CHECK(self, dscomm_group_split(self->world, color, -self->rank, NULL,
                                   &group) == DSCOMM_OK);
    CHECK(self, (self->rank == 4) == (group == NULL));
    if (!group)
        return;
    CHECK(self, dscomm_group_size(group) == 2);
    CHECK(self, dscomm_group_rank(group) == 1 - self->rank % 2);
    CHECK(self, sum_of_ranks(self, group) == self->rank + partner);
    CHECK(self, dscomm_group_free(group) == DSCOMM_OK);
}

/* Compares the ids of a group with rank 0's. Returns whether they are equal. */
static int id_is_shared(rank_t *self, dscomm_group_t *group)
{
    const char *id = dscomm_group_id(group);
    void *first = NULL;
    size_t size = 0;
    int same;

    CHECK(self,
          !dscomm_broadcast_blob(group, id, strlen(id), 0, &first, &size));
    same = size == strlen(id) && !memcmp(first, id, size);
    dscomm_blob_free(first);
    return same;
}

/* Groups of equal members, or made by equal calls, have ids of their own. */
static void ids(rank_t *self)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    const int all[] = {0, 1, 2, 3}, odd = self->rank % 2;
    dscomm_group_t *groups[4];
    void *listed = NULL;
    size_t sizes[4];

    attr.members_only = 1;
    CHECK(self, !dscomm_group_split(self->world, odd, 0, NULL, &groups[0]));
    CHECK(self, !dscomm_group_split(self->world, odd, 0, NULL, &groups[1]));
    CHECK(self, !dscomm_group_new(self->world, all, 4, &attr, &groups[2]));
    CHECK(self, !dscomm_group_new(self->world, all, 4, &attr, &groups[3]));
    CHECK(self, id_is_shared(self, self->world));
    for (int i = 0; i < 4; i++) {
        CHECK(self, id_is_shared(self, groups[i]));
        CHECK(self,
              strcmp(dscomm_group_id(groups[i]), dscomm_group_id(self->world)));
        for (int j = 0; j < i; j++)
            CHECK(self, strcmp(dscomm_group_id(groups[i]),
                               dscomm_group_id(groups[j])));
    }
    CHECK(self, !dscomm_all_gather_blob(self->world, dscomm_group_id(groups[0]),
                                        strlen(dscomm_group_id(groups[0])),
                                        &listed, sizes));
    CHECK(self, sizes[0] != sizes[1] ||
                    memcmp(listed, (char *)listed + sizes[0], sizes[0]) != 0);
    dscomm_blob_free(listed);
    for (int i = 0; i < 4; i++)
        CHECK(self, !dscomm_group_free(groups[i]));
    CHECK(self, !*dscomm_group_id(NULL));
}

static void mesh(rank_t *self)
{
    const int dims[] = {2, -1}, wrong[] = {4, -1};
    dscomm_group_t *groups[2] = {NULL, NULL};
    int row = self->rank / 3, column = self->rank % 3;

    CHECK(self, dscomm_group_mesh(self->world, wrong, 2, groups) ==
                    DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_group_mesh(self->world, dims, 2, groups) == DSCOMM_OK);
    if (!groups[0])
        return;
    CHECK(self, dscomm_group_size(groups[0]) == 2);
    CHECK(self, dscomm_group_size(groups[1]) == 3);
    CHECK(self, dscomm_group_rank(groups[0]) == row);
    CHECK(self, dscomm_group_rank(groups[1]) == column);
    CHECK(self, sum_of_ranks(self, groups[0]) == 2 * column + 3);
    CHECK(self, sum_of_ranks(self, groups[1]) == 9 * row + 3);
    for (int d = 0; d < 2; d++)
        CHECK(self, dscomm_group_free(groups[d]) == DSCOMM_OK);
}

/* Rank 2 gives another list. */
static void disagree(rank_t *self)
{
    const int ranks[] = {0, self->rank == 2 ? 2 : 1};
    dscomm_group_t *group;
    dscomm_status_t status =
        dscomm_group_new(self->world, ranks, 2, NULL, &group);

    FAILS(self, DSCOMM_ERR_MISMATCH,
          "called dscomm_group_new(ranks {0,2}, count 2, backend "
          "thread), but rank 0 (pid ",
          status);
    CHECK(self, dscomm_barrier(self->world, NULL) == DSCOMM_OK);
}

/* Rank 2 gives another backend; this is allowed if it is alone in its group. */
static void disagree_on_backend(rank_t *self)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group;
    dscomm_status_t status;

    attr.backend = self->rank == 2 ? "self" : NULL;
    status = dscomm_group_split(self->world, 7, 0, &attr, &group);
    FAILS(self, DSCOMM_ERR_MISMATCH,
          "called dscomm_group_split(color 7, key 0, backend "
          "self), but rank 0 (pid ",
          status);
    CHECK(self,
          !dscomm_group_split(self->world, self->rank == 2, 0, &attr, &group));
    CHECK(self, sum_of_ranks(self, group) == (self->rank == 2 ? 2 : 1));
    CHECK(self, !dscomm_group_free(group));
}

/* One rank cannot open its first group, so the others never make the second
 * one; the next group can be made all the same. */
static void failed_mesh(rank_t *self)
{
    const int all[] = {0, 1, 2, 3}, dims[] = {2, 2};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *parent, *lines[2] = {NULL, NULL}, *group = NULL;

    attr.name = "fragile";
    attr.timeout_ms = 300;
    CHECK(self, !dscomm_group_new(self->world, all, 4, &attr, &parent));
    CHECK(self, dscomm_group_mesh(parent, dims, 2, lines) < 0);
    CHECK(self, !lines[0] && !lines[1]);
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self, !dscomm_group_new(parent, all, 4, NULL, &group));
    CHECK(self, !strcmp(dscomm_group_name(group), "fragile/3"));
    if (group)
        CHECK(self, sum_of_ranks(self, group) == 6);
    CHECK(self, !dscomm_group_free(group));
    CHECK(self, !dscomm_group_free(parent));
}

/* A child stays valid when its parent is freed; remaining groups are freed with
 * the world. */
static void outlive(rank_t *self)
{
    dscomm_group_t *parent, *child, *left;

    parent = split_all(self, 0);
    CHECK(self, !dscomm_group_split(parent, 0, 0, NULL, &child));
    CHECK(self, !strcmp(dscomm_group_name(child), "world/1.0/1.0"));
    CHECK(self, dscomm_group_free(parent) == DSCOMM_OK);
    CHECK(self, sum_of_ranks(self, child) == 3);
    CHECK(self, !dscomm_group_split(child, 0, 0, NULL, &left));
    CHECK(self, sum_of_ranks(self, left) == 3);
    CHECK(self, dscomm_group_free(child) == DSCOMM_OK);
}

static void abort_group(rank_t *self)
{
    dscomm_group_t *group = split_all(self, 0);
    dscomm_status_t status;

    if (self->rank == 1) {
        usleep(20000);
        CHECK(self, !dscomm_group_abort(group, "enough\nof it"));
    }
    status = dscomm_barrier(group, NULL);
    FAILS(self, DSCOMM_ERR_ABORTED, "rank 1 aborted", status);
    CHECK(self, strstr(dscomm_last_error(), "enough of it"));
    CHECK(self, dscomm_group_status(group) == DSCOMM_ERR_ABORTED);
    CHECK(self, dscomm_barrier(group, NULL) == DSCOMM_ERR_ABORTED);
    CHECK(self, dscomm_group_status(self->world) == DSCOMM_OK);
    CHECK(self, dscomm_group_free(group) == DSCOMM_OK);
    CHECK(self, dscomm_barrier(self->world, NULL) == DSCOMM_OK);
}

/* A failure inside a public call names that call. */
static void abort_split(rank_t *self)
{
    dscomm_group_t *child;

    if (self->rank == 1) {
        usleep(20000);
        CHECK(self, !dscomm_group_abort(self->world, "enough"));
        return;
    }
    FAILS(self, DSCOMM_ERR_ABORTED, "dscomm_group_split on group ",
          dscomm_group_split(self->world, 0, 0, NULL, &child));
    CHECK(self, strstr(dscomm_last_error(), "rank 1 aborted"));
}

static void abort_new(rank_t *self)
{
    const int ranks[] = {0, 1};
    dscomm_group_t *child;

    if (self->rank == 1) {
        usleep(20000);
        CHECK(self, !dscomm_group_abort(self->world, "enough"));
        return;
    }
    FAILS(self, DSCOMM_ERR_ABORTED, "dscomm_group_new on group ",
          dscomm_group_new(self->world, ranks, 2, NULL, &child));
}

/* Calls that do not match end the group, and the sentence names ranks and
 * calls. */
static void mismatch(rank_t *self)
{
    int32_t x = 1, y;
    dscomm_status_t status;

    if (self->rank)
        status = dscomm_all_reduce(self->world, &x, &y, 1, DSCOMM_INT32,
                                   DSCOMM_MAX, NULL);
    else
        status = dscomm_barrier(self->world, NULL);
    FAILS(self, DSCOMM_ERR_MISMATCH, "barrier() #1", status);
    CHECK(self, strstr(dscomm_last_error(), "all_reduce(count 1, int32, max)"));
}

/* The core runs collectives that the backend does not support by messages. */
static void scheduled(rank_t *self)
{
    const dscomm_coll_t coll = DSCOMM_COLL_ALL_TO_ALL;
    int32_t x[2] = {10 + self->rank, 20 + self->rank}, y[2] = {0};
    const char *name = "native";

    CHECK(self, !dscomm_group_algorithm(self->world, coll, DSCOMM_INT32,
                                        DSCOMM_SUM, 1, 0, &name));
    CHECK(self, strcmp(name, "native"));
    CHECK(self, !exchange_one(self->world, x, y, NULL));
    CHECK(self, y[0] == 10 * (self->rank + 1));
    CHECK(self, y[1] == 10 * (self->rank + 1) + 1);
    CHECK(self, dscomm_group_sequence(self->world) == 1);
}

static void blobs(rank_t *self)
{
    char text[32];
    size_t size = 99, sizes[4];
    void *blob;

    snprintf(text, sizeof text, "rank %d%.*s", self->rank, self->rank, "....");
    CHECK(self, !dscomm_broadcast_blob(self->world, text, strlen(text), 2,
                                       &blob, &size));
    CHECK(self, size == 8 && !memcmp(blob, "rank 2..", 8));
    dscomm_blob_free(blob);
    CHECK(self, !dscomm_broadcast_blob(self->world, NULL, 0, 1, &blob, &size));
    CHECK(self, size == 0 && blob);
    dscomm_blob_free(blob);
    CHECK(self, !dscomm_all_gather_blob(self->world, text, strlen(text), &blob,
                                        sizes));
    CHECK(self, sizes[0] == 6 && sizes[1] == 7 && sizes[2] == 8);
    CHECK(self, !memcmp(blob, "rank 0rank 1.rank 2..", 21));
    dscomm_blob_free(blob);
}

/* An attachment: its key, and how often it was ended. */
typedef struct {
    dscomm_group_t *group, *inner;
    int ends, communicates;
} kept_t;

static void end_kept(void *value)
{
    kept_t *kept = value;

    kept->ends++;
    kept->communicates = !dscomm_group_free(kept->inner);
}

static void attachments(rank_t *self)
{
    static const char key[3];
    kept_t kept[3] = {0};
    dscomm_group_t *group = NULL;

    group = split_all(self, 0);
    CHECK(self, !dscomm_group_split(group, 0, 0, NULL, &kept[0].inner));
    CHECK(self, !dscomm_group_attached(group, &key[0]));
    CHECK(self, !dscomm_group_attach(group, &key[0], &kept[1], end_kept));
    CHECK(self, !dscomm_group_attach(group, &key[0], &kept[0], end_kept));
    CHECK(self, !dscomm_group_attach(group, &key[1], &kept[1], end_kept));
    CHECK(self, !dscomm_group_attach(group, &key[2], &kept[2], NULL));
    CHECK(self, dscomm_group_attached(group, &key[0]) == &kept[0]);
    CHECK(self, dscomm_group_attached(group, &key[2]) == &kept[2]);
    CHECK(self, !dscomm_group_attached(self->world, &key[0]));
    CHECK(self, !dscomm_group_attach(group, &key[1], NULL, NULL));
    CHECK(self, !dscomm_group_attached(group, &key[1]));
    CHECK(self, dscomm_group_attach(group, NULL, &kept[0], NULL) ==
                    DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_group_attach(NULL, &key[0], &kept[0], NULL) ==
                    DSCOMM_ERR_INVALID);
    CHECK(self, !dscomm_group_free(group));
    CHECK(self, kept[0].ends == 1 && kept[0].communicates);
    CHECK(self, kept[1].ends == 0 && kept[2].ends == 0);
    CHECK(self, dscomm_group_attach(group, &key[0], &kept[0], NULL) ==
                    DSCOMM_ERR_INVALID);
    CHECK(self, !dscomm_group_attached(group, &key[0]));
}

static kept_t of_worlds[3];

static void attach_to_world(rank_t *self)
{
    static const char key;
    kept_t *kept = &of_worlds[self->rank];

    kept->ends = 0;
    CHECK(self, !dscomm_group_attach(self->world, &key, kept, end_kept));
}

int main(void)
{
    ranks_use_modules();
    ranks_run(5, 10000, new_groups, "groups from lists");
    ranks_run(5, 10000, split, "split by colour and key");
    ranks_run(4, 10000, ids, "ids are equal on all ranks of one group only");
    ranks_run(6, 10000, mesh, "a mesh");
    ranks_run(3, 10000, disagree, "lists that differ are found");
    ranks_run(3, 1000, disagree_on_backend, "backends that differ are found");
    ranks_run(4, 10000, failed_mesh, "a mesh that one rank cannot open");
    ranks_run(3, 10000, outlive, "children outlive their parents");
    ranks_run(3, 10000, abort_group, "abort ends one group");
    ranks_run(3, 10000, abort_split, "abort within a split");
    ranks_run(3, 10000, abort_new, "abort within a new group");
    ranks_run(3, 10000, mismatch, "calls that do not match");
    ranks_run(2, 10000, scheduled, "what the backend does not take");
    ranks_run(3, 10000, blobs, "blobs");
    ranks_run(3, 10000, attachments, "attachments");
    ranks_run(3, 10000, attach_to_world, "attachments of a world");
    ok(of_worlds[0].ends == 1 && of_worlds[1].ends == 1 &&
           of_worlds[2].ends == 1,
       "each ended once, with its world");
    return tap_done();
}
