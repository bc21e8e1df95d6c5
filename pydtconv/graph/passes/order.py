"""The passes in the order in which they run, and the stages behind them.

A new pass is a file of this folder, a row here, and its tests; docs/guides/writing-a-pass.md shows one.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydtconv.graph.passes.activation import fuse_activation
from pydtconv.graph.passes.algorithms import choose_algorithms
from pydtconv.graph.passes.augmentations import join_augmentations
from pydtconv.graph.passes.backward_reductions import fuse_backward_reductions
from pydtconv.graph.passes.bias import fuse_bias
from pydtconv.graph.passes.both_directions import join_directions
from pydtconv.graph.passes.bypassed_normalization import bypass_normalization
from pydtconv.graph.passes.casts import place_casts
from pydtconv.graph.passes.common_subexpressions import merge_equal_nodes
from pydtconv.graph.passes.dead_nodes import remove_dead_nodes
from pydtconv.graph.passes.exact_statistics import sum_exactly
from pydtconv.graph.passes.graph_pass import (
    FREE_TO_ROUND,
    HAS_LOSS,
    ON_MESH,
    ON_NETWORK,
    PREDICTION,
    SPLIT,
    STRICT,
    TRAINING,
    GraphPass,
    check_table,
)
from pydtconv.graph.passes.kept_spectra import keep_spectra
from pydtconv.graph.passes.kernels import find_kernels
from pydtconv.graph.passes.loops import plan_loops
from pydtconv.graph.passes.loss import fuse_loss
from pydtconv.graph.passes.normalized_prologue import elide_normalization
from pydtconv.graph.passes.normalized_results import normalize_results
from pydtconv.graph.passes.packed_halos import pack_halos
from pydtconv.graph.passes.padding import fuse_padding
from pydtconv.graph.passes.patches import split_patches
from pydtconv.graph.passes.pool_before_relu import pool_before_relu
from pydtconv.graph.passes.residual_addition import fuse_addition
from pydtconv.graph.passes.separable_convolutions import join_separable
from pydtconv.graph.passes.shared_moments import share_moments
from pydtconv.graph.passes.spatial import cut_images
from pydtconv.graph.passes.state_copies import copy_state
from pydtconv.graph.passes.transposes import sink_transposes
from pydtconv.graph.passes.wide_results import widen_results
from pydtconv.graph.passes.wider_halos import widen_halos

PASSES: tuple[GraphPass, ...] = (
    GraphPass(
        "dead-nodes",
        remove_dead_nodes,
        takes="a graph as it was traced",
        leaves="every node is one on which a result depends, or changes state",
    ),
    GraphPass(
        "casts",
        place_casts,
        takes="no dead nodes, whose readers would count",
        leaves="every operator on bfloat16 has a kernel for it, and no cast undoes another",
        after=("dead-nodes",),
    ),
    GraphPass(
        "state-copies",
        copy_state,
        takes="operators in the order of the trace; casts are where they stay",
        leaves="what backward reads of state is what forward has read",
        after=("casts",),
        when=HAS_LOSS,
    ),
    GraphPass(
        "common-subexpressions",
        merge_equal_nodes,
        takes="operators as they were traced; casts are where they stay",
        leaves="no operator that computes what one before it has computed",
        after=("casts", "state-copies"),
    ),
    GraphPass(
        "patches",
        split_patches,
        takes="no dead nodes; operators as they were traced, nothing fused",
        leaves="what `graph.split` says is computed in patches, one after the other, and rejoined",
        after=("dead-nodes", "casts"),
        when=SPLIT,
    ),
    GraphPass(
        "transposes",
        sink_transposes,
        takes="no dead nodes, whose readers would count",
        leaves="no transpose of a transpose, none before an element-wise operator that can run without it",
        after=("dead-nodes", "casts"),
    ),
    GraphPass(
        "padding",
        fuse_padding,
        takes="a tensor's readers are all in the graph",
        leaves="zeros around an image are the padding of the convolution that reads it",
        after=("dead-nodes",),
    ),
    GraphPass(
        "bias",
        fuse_bias,
        takes="transposes do not stand between an operator and its bias",
        leaves="a bias is the third input of its convolution or dense operator",
        after=("transposes",),
    ),
    GraphPass(
        "normalized-results",
        normalize_results,
        takes="a bias has been added; neither an activation nor a residual has been",
        leaves="a convolution normalizes its results by moving statistics, where these do not change",
        after=("bias",),
        when=PREDICTION,
    ),
    GraphPass(
        "residual-addition",
        fuse_addition,
        takes="a bias has been added; an activation has not been applied",
        leaves="an addition to what a convolution computes is done by that convolution",
        after=("bias", "normalized-results"),
    ),
    GraphPass(
        "activation",
        fuse_activation,
        takes="what comes before the activation is fused: bias and residual addition",
        leaves="an activation is an attribute of the operator before it, where that can find its slope in backward",
        after=("bias", "residual-addition"),
    ),
    GraphPass(
        "pool-before-relu",
        pool_before_relu,
        takes="an activation is an attribute where it can be one",
        leaves="ReLU comes after the maximum pooling that was its only reader",
        after=("activation",),
        when=HAS_LOSS,
    ),
    GraphPass(
        "loss",
        fuse_loss,
        takes="no dead nodes",
        leaves="probabilities and their cross-entropy are one operator on the scores",
        after=("dead-nodes",),
    ),
    GraphPass(
        "wide-results",
        widen_results,
        takes="what a dense operator can take in, it has taken in: bias and activation",
        leaves="no cast to float32 of what a dense operator alone writes",
        after=("casts", "bias", "activation", "loss"),
    ),
    GraphPass(
        "spatial",
        cut_images,
        takes="operators are fused; what they read and leave are whole images",
        leaves="tensors are this process's parts; halos, gathering and sums over processes are operators",
        after=("padding", "residual-addition", "activation", "pool-before-relu", "loss"),
        when=ON_MESH,
    ),
    GraphPass(
        "wider-halos",
        widen_halos,
        takes="each operator that reads windows has an exchange of its halo before it",
        leaves="convolutions that follow each other share one wider halo, where that pays",
        after=("spatial",),
        when=ON_NETWORK,
    ),
    GraphPass(
        "separable-convolutions",
        join_separable,
        takes="what follows a convolution is fused; on a mesh, operators that read windows are parted",
        leaves="a depthwise convolution and the pointwise one that alone reads its result are one operator",
        after=("casts", "bias", "normalized-results", "residual-addition", "activation", "pool-before-relu", "spatial"),
    ),
    GraphPass(
        "exact-statistics",
        sum_exactly,
        takes="no dead nodes",
        leaves="batch normalization sums in float64",
        after=("dead-nodes",),
        when=STRICT,
    ),
    GraphPass(
        "shared-moments",
        share_moments,
        takes="convolutions compute what is normalized: additions are fused, activations are where they stay",
        leaves="statistics that a convolution gathers, or that several layers read, are tensors",
        after=(
            "residual-addition",
            "activation",
            "pool-before-relu",
            "separable-convolutions",
            "exact-statistics",
            "wider-halos",
        ),
        when=TRAINING,
    ),
    GraphPass(
        "packed-halos",
        pack_halos,
        takes="operators that read windows are final, and their exchanges of halos stand before them",
        leaves="halos that would be copies of images are vectors, which convolutions and pooling read besides them",
        after=("spatial", "shared-moments"),
        when=ON_MESH,
    ),
    GraphPass(
        "augmentations",
        join_augmentations,
        takes="operators that draw are where they stay, and as many as they stay",
        leaves="random changes of images that follow each other are one operator",
        after=("spatial", "packed-halos"),
        when=FREE_TO_ROUND,
    ),
    GraphPass(
        "both-directions",
        join_directions,
        takes="no dead nodes; operators are where they stay",
        leaves="two recurrences of few samples that go opposite ways are one operator",
        after=("dead-nodes", "spatial"),
    ),
    GraphPass(
        "kernels",
        find_kernels,
        takes="the operators are final but for the algorithms of convolutions",
        leaves="each node knows the kernel that runs it",
        after=(
            "padding",
            "bias",
            "residual-addition",
            "activation",
            "pool-before-relu",
            "loss",
            "wide-results",
            "spatial",
            "shared-moments",
            "packed-halos",
            "augmentations",
            "both-directions",
        ),
    ),
    GraphPass(
        "algorithms",
        choose_algorithms,
        takes="the operators are final, and there is a kernel for each",
        leaves="each convolution names its algorithms; `graph.algorithms` lists them",
        after=("kernels",),
    ),
    GraphPass(
        "kept-spectra",
        keep_spectra,
        takes="the algorithms are known",
        leaves="`graph.kept`: convolutions that keep transforms of x for backward, or of dy in it",
        after=("algorithms",),
        when=HAS_LOSS,
    ),
    GraphPass(
        "loops",
        plan_loops,
        takes="the operators are final",
        leaves="loops whose bodies are planned for the gradients that are wanted of them",
        after=("kernels",),
    ),
    GraphPass(
        "backward-reductions",
        fuse_backward_reductions,
        takes="the algorithms are known",
        leaves="`graph.fused_reductions`: operators that compute the sums of a normalization's backward",
        after=("algorithms",),
        when=HAS_LOSS,
    ),
    GraphPass(
        "bypassed-normalization",
        bypass_normalization,
        takes="it is known which convolutions compute the sums of a normalization's backward",
        leaves="`graph.bypassed`: those of them that write the gradient of what was normalized",
        after=("backward-reductions",),
        when=HAS_LOSS,
    ),
    GraphPass(
        "normalized-prologue",
        elide_normalization,
        takes="the algorithms are known",
        leaves="`graph.elided`: normalized images that their readers compute as they read",
        after=("algorithms",),
    ),
)


@dataclass(frozen=True)
class Stage:
    """What happens to a graph behind the passes.  where: module and name of what does it."""

    name: str
    where: str
    takes: str
    leaves: str


STAGES: tuple[Stage, ...] = (
    Stage(
        "rematerialization",
        "pydtconv.graph.schedule.rematerialization:Rematerialization",
        takes="the passes have run; a memory limit may name the tensors",
        leaves="which tensors forward keeps, and which backward computes again",
    ),
    Stage(
        "sharing",
        "pydtconv.graph.memory.sharing:Sharing",
        takes="what is kept for backward",
        leaves="which tensors share a storage: views, slices of concatenations, results in place",
    ),
    Stage(
        "schedule",
        "pydtconv.graph.schedule.scheduler:Scheduler",
        takes="where forward's tensors lie",
        leaves="the steps of forward and backward in order, with the life times of all storages",
    ),
    Stage(
        "buffer-assignment",
        "pydtconv.graph.memory.buffer_assignment:assign_offsets",
        takes="life times",
        leaves="an offset for each storage, and the size of the arena",
    ),
    Stage(
        "binding",
        "pydtconv.graph.runtime.binder:Binder",
        takes="a plan, and memory of its size",
        leaves="a call without arguments for each step",
    ),
)

check_table(PASSES)
