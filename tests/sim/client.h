/* client.h - what a simulated client and its keeper know of each other. A client is an index. */
#ifndef HF_TESTS_SIM_CLIENT_H
#define HF_TESTS_SIM_CLIENT_H

#include "world.h"

/* The client's own clock; and when it will show that. */
int64_t sim_client_now(const struct sim_world *world, const struct sim_client *client);
int64_t sim_client_true_ns(const struct sim_client *client, int64_t local_ns);
/* An event of this attempt and round, at a true time. */
void sim_client_later(struct sim_world *world, unsigned index, enum sim_kind kind, enum sim_op op,
                      int64_t at_ns);
/* A request to every node that is concerned. */
void sim_client_ask_all(struct sim_world *world, unsigned index, enum sim_op op);
/* Ends the hold; the next attempt comes soon. */
void sim_client_give_back(struct sim_world *world, unsigned index);

/* keeper.c: the keeper looks at a lease that is due. */
void sim_keeper_look(struct sim_world *world, unsigned index);
/* What the nodes make of a renewal, after each answer. */
void sim_keeper_renewed(struct sim_world *world, unsigned index, enum hf__quorum_action action);

#endif /* HF_TESTS_SIM_CLIENT_H */
