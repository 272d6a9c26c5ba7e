# SPDX-License-Identifier: BSD-3-Clause
"""The functions of libdscomm that this package calls, as its headers declare them."""

PROTOTYPES = """
const char *dscomm_last_error(void);
dscomm_status_t dscomm_broadcast(dscomm_group_t *group, void *buffer, size_t count,
    dscomm_dtype_t dtype, int root, dscomm_work_t **ret_work);
dscomm_status_t dscomm_reduce(dscomm_group_t *group, const void *send, void *recv,
    size_t count, dscomm_dtype_t dtype, dscomm_op_t op, int root,
    dscomm_work_t **ret_work);
dscomm_status_t dscomm_all_reduce(dscomm_group_t *group, const void *send, void *recv,
    size_t count, dscomm_dtype_t dtype, dscomm_op_t op, dscomm_work_t **ret_work);
dscomm_status_t dscomm_all_gather(dscomm_group_t *group, const void *send, void *recv,
    size_t send_count, dscomm_dtype_t dtype, dscomm_work_t **ret_work);
dscomm_status_t dscomm_all_gather_v(dscomm_group_t *group, const void *send,
    size_t send_count, void *recv, const size_t *recv_counts,
    const size_t *recv_displs, dscomm_dtype_t dtype, dscomm_work_t **ret_work);
dscomm_status_t dscomm_reduce_scatter(dscomm_group_t *group, const void *send,
    void *recv, size_t recv_count, dscomm_dtype_t dtype, dscomm_op_t op,
    dscomm_work_t **ret_work);
dscomm_status_t dscomm_reduce_scatter_v(dscomm_group_t *group, const void *send,
    void *recv, const size_t *recv_counts, dscomm_dtype_t dtype, dscomm_op_t op,
    dscomm_work_t **ret_work);
dscomm_status_t dscomm_gather(dscomm_group_t *group, const void *send, void *recv,
    size_t send_count, dscomm_dtype_t dtype, int root, dscomm_work_t **ret_work);
dscomm_status_t dscomm_gather_v(dscomm_group_t *group, const void *send,
    size_t send_count, void *recv, const size_t *recv_counts,
    const size_t *recv_displs, dscomm_dtype_t dtype, int root,
    dscomm_work_t **ret_work);
dscomm_status_t dscomm_scatter(dscomm_group_t *group, const void *send, void *recv,
    size_t recv_count, dscomm_dtype_t dtype, int root, dscomm_work_t **ret_work);
dscomm_status_t dscomm_scatter_v(dscomm_group_t *group, const void *send,
    const size_t *send_counts, const size_t *send_displs, void *recv,
    size_t recv_count, dscomm_dtype_t dtype, int root, dscomm_work_t **ret_work);
dscomm_status_t dscomm_all_to_all(dscomm_group_t *group, const void *send, void *recv,
    size_t count, dscomm_dtype_t dtype, dscomm_work_t **ret_work);
dscomm_status_t dscomm_all_to_all_v(dscomm_group_t *group, const void *send,
    const size_t *send_counts, const size_t *send_displs, void *recv,
    const size_t *recv_counts, const size_t *recv_displs, dscomm_dtype_t dtype,
    dscomm_work_t **ret_work);
dscomm_status_t dscomm_barrier(dscomm_group_t *group, dscomm_work_t **ret_work);
dscomm_status_t dscomm_monitored_barrier_late(dscomm_group_t *group,
    int timeout_ms, int *ret_ranks, int *ret_count);
dscomm_status_t dscomm_broadcast_blob(dscomm_group_t *group, const void *blob,
    size_t size, int root, void **ret_blob, size_t *ret_size);
dscomm_status_t dscomm_all_gather_blob(dscomm_group_t *group, const void *blob,
    size_t size, void **ret_blob, size_t *ret_sizes);
void dscomm_blob_free(void *blob);
dscomm_status_t dscomm_all_reduce_premul_sum(dscomm_group_t *group, const void *send,
    void *recv, size_t count, dscomm_dtype_t dtype, double factor,
    dscomm_work_t **ret_work);
dscomm_status_t dscomm_reduce_premul_sum(dscomm_group_t *group, const void *send,
    void *recv, size_t count, dscomm_dtype_t dtype, double factor, int root,
    dscomm_work_t **ret_work);
dscomm_status_t dscomm_reduce_scatter_premul_sum(dscomm_group_t *group,
    const void *send, void *recv, size_t recv_count, dscomm_dtype_t dtype,
    double factor, dscomm_work_t **ret_work);
dscomm_status_t dscomm_env_discover(const dscomm_env_attr_t *attr,
    dscomm_env_t **ret_env);
void dscomm_env_free(dscomm_env_t *env);
int dscomm_env_rank(const dscomm_env_t *env);
int dscomm_env_world_size(const dscomm_env_t *env);
int dscomm_env_local_rank(const dscomm_env_t *env);
int dscomm_env_local_size(const dscomm_env_t *env);
int dscomm_env_node_rank(const dscomm_env_t *env);
const char *dscomm_env_master_addr(const dscomm_env_t *env);
int dscomm_env_master_port(const dscomm_env_t *env);
int dscomm_env_agent_store(const dscomm_env_t *env);
const char *dscomm_env_job(const dscomm_env_t *env);
const char *dscomm_env_source(const dscomm_env_t *env);
const char *dscomm_env_warning(const dscomm_env_t *env, size_t index);
dscomm_status_t dscomm_group_failure(const dscomm_group_t *group,
    dscomm_failure_t *ret_failure);
dscomm_status_t dscomm_group_new(dscomm_group_t *parent, const int *ranks, int count,
    const dscomm_group_attr_t *attr, dscomm_group_t **ret_group);
dscomm_status_t dscomm_group_split(dscomm_group_t *parent, int color, int key,
    const dscomm_group_attr_t *attr, dscomm_group_t **ret_group);
dscomm_status_t dscomm_group_mesh(dscomm_group_t *parent, const int *dims, int ndims,
    dscomm_group_t **ret_groups);
dscomm_status_t dscomm_group_shrink(dscomm_group_t *group,
    const dscomm_group_attr_t *attr, dscomm_group_t **ret_group);
dscomm_status_t dscomm_group_free(dscomm_group_t *group);
dscomm_status_t dscomm_group_abort(dscomm_group_t *group, const char *reason);
dscomm_status_t dscomm_group_status(const dscomm_group_t *group);
int dscomm_group_rank(const dscomm_group_t *group);
int dscomm_group_size(const dscomm_group_t *group);
int dscomm_group_local_rank(const dscomm_group_t *group);
int dscomm_group_local_size(const dscomm_group_t *group);
int dscomm_group_node_rank(const dscomm_group_t *group);
const char *dscomm_group_name(const dscomm_group_t *group);
const char *dscomm_group_backend(const dscomm_group_t *group);
int dscomm_group_timeout(const dscomm_group_t *group);
dscomm_status_t dscomm_group_to_global(const dscomm_group_t *group, int rank,
    int *ret_rank);
dscomm_status_t dscomm_group_from_global(const dscomm_group_t *group, int rank,
    int *ret_rank);
dscomm_status_t dscomm_group_fd(dscomm_group_t *group, int *ret_fd);
uint64_t dscomm_group_sequence(const dscomm_group_t *group);
uint64_t dscomm_group_number(const dscomm_group_t *group);
const char *dscomm_group_id(const dscomm_group_t *group);
uint64_t dscomm_group_capabilities(const dscomm_group_t *group);
const char *dscomm_coll_name(dscomm_coll_t coll);
dscomm_status_t dscomm_init(const dscomm_init_attr_t *attr,
    dscomm_group_t **ret_world);
dscomm_status_t dscomm_finalize(dscomm_group_t *world);
dscomm_status_t dscomm_log_set_levels(const char *levels);
dscomm_status_t dscomm_probe(dscomm_group_t *group, int source, int tag,
    int timeout_ms, dscomm_message_info_t *ret_info);
dscomm_status_t dscomm_isend(dscomm_group_t *group, const void *buffer, size_t count,
    dscomm_dtype_t dtype, int dest, int tag, dscomm_work_t **ret_work);
dscomm_status_t dscomm_irecv(dscomm_group_t *group, void *buffer, size_t count,
    dscomm_dtype_t dtype, int source, int tag, dscomm_work_t **ret_work);
dscomm_status_t dscomm_work_wait(dscomm_work_t *work, int timeout_ms);
dscomm_status_t dscomm_work_test(dscomm_work_t *work);
dscomm_status_t dscomm_work_wait_any(dscomm_work_t *const *works, size_t count,
    int timeout_ms, size_t *ret_index);
void dscomm_work_free(dscomm_work_t *work);
dscomm_status_t dscomm_work_cancel(dscomm_work_t *work);
dscomm_status_t dscomm_work_set_timeout(dscomm_work_t *work, int timeout_ms);
dscomm_status_t dscomm_work_received_at(const dscomm_work_t *work, size_t index,
    dscomm_message_info_t *ret_info);
dscomm_status_t dscomm_coalesce_begin(dscomm_group_t *group);
dscomm_status_t dscomm_coalesce_end(dscomm_group_t *group, dscomm_work_t **ret_work);
dscomm_status_t dscomm_mem_alloc(dscomm_group_t *group, size_t size,
    void **ret_memory);
dscomm_status_t dscomm_mem_free(dscomm_group_t *group, void *memory);
dscomm_status_t dscomm_mem_register(dscomm_group_t *group, void *address,
    size_t bytes, dscomm_mem_t **ret_mem);
dscomm_status_t dscomm_mem_key(const dscomm_mem_t *mem, void *key);
dscomm_status_t dscomm_mem_deregister(dscomm_mem_t *mem);
dscomm_status_t dscomm_put(dscomm_group_t *group, const void *data, size_t bytes,
    const void *key, size_t offset, dscomm_work_t **ret_work);
dscomm_status_t dscomm_get(dscomm_group_t *group, void *data, size_t bytes,
    const void *key, size_t offset, dscomm_work_t **ret_work);
dscomm_status_t dscomm_signal(dscomm_group_t *group, int rank,
    dscomm_work_t **ret_work);
dscomm_status_t dscomm_signal_wait(dscomm_group_t *group, int rank, int timeout_ms);
dscomm_status_t dscomm_store_open(const char *url, const dscomm_store_attr_t *attr,
    dscomm_store_t **ret_store);
dscomm_status_t dscomm_store_prefix(dscomm_store_t *store, const char *prefix,
    dscomm_store_t **ret_store);
void dscomm_store_close(dscomm_store_t *store);
int dscomm_store_port(const dscomm_store_t *store);
dscomm_status_t dscomm_store_set(dscomm_store_t *store, const char *key,
    const void *value, size_t size);
dscomm_status_t dscomm_store_get(dscomm_store_t *store, const char *key,
    int timeout_ms, void **ret_value, size_t *ret_size);
void dscomm_store_free(void *value);
dscomm_status_t dscomm_store_multi_get(dscomm_store_t *store, const char *const *keys,
    size_t count, int timeout_ms, void **ret_values, size_t *ret_sizes);
dscomm_status_t dscomm_store_wait(dscomm_store_t *store, const char *const *keys,
    size_t count, int timeout_ms);
dscomm_status_t dscomm_store_add(dscomm_store_t *store, const char *key,
    int64_t delta, int64_t *ret_sum);
dscomm_status_t dscomm_store_compare_set(dscomm_store_t *store, const char *key,
    const void *expected, size_t expected_size, const void *desired,
    size_t desired_size, void **ret_value, size_t *ret_size);
dscomm_status_t dscomm_store_append(dscomm_store_t *store, const char *key,
    const void *value, size_t size);
dscomm_status_t dscomm_store_delete(dscomm_store_t *store, const char *key,
    int *ret_deleted);
dscomm_status_t dscomm_store_check(dscomm_store_t *store, const char *const *keys,
    size_t count, int *ret_present);
dscomm_status_t dscomm_store_num_keys(dscomm_store_t *store, int64_t *ret_count);
const char *dscomm_version_string(void);
"""
