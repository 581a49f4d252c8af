"""Bytes that generated kernels move, from Inductor's code."""

from __future__ import annotations

from compilescope.knowledge.analysis.step_kernels import kernel_traffic

CPP = """
cpp_fused_relu_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* in_out_ptr1)
{
    float* other;
}
''')
        assert_size_stride(arg0_1, (64, 16), (16, 1), 'input')
        buf0 = empty_strided_cpu((64, ), (1, ), torch.float32)
        buf1 = buf0; del buf0  # reuse
        cpp_fused_relu_0(arg0_1, buf1)
"""
TRITON = """
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
    triton_meta={'signature': {'in_ptr0': '*bf16', 'out_ptr0': '*fp32', 'xnumel': 'i32'}},
''', device_str='cuda')
        assert_size_stride(arg0_1, (8, 4), (4, 1))
        buf0 = empty_strided_cuda((8, 4), (4, 1), torch.float32)
        triton_poi_fused_add_0.run(reinterpret_tensor(arg0_1, (32, ), (1, ), 0), buf0, 32, stream=s)
        triton_poi_fused_add_0.run(buf0, buf0, 32, stream=s)
"""


def test_cpp() -> None:
    assert kernel_traffic(CPP) == {"cpp_fused_relu_0": 64 * 16 * 4 + 2 * 64 * 4}


def test_triton_calls_add_up() -> None:
    assert kernel_traffic(TRITON) == {"triton_poi_fused_add_0": 2 * 32 * (2 + 4)}


def test_sizes_that_only_the_run_knows() -> None:
    assert kernel_traffic(TRITON.replace("(8, 4), (4, 1))", "(s0, 4), (4, 1))")) != {}
    unknown = TRITON.replace("empty_strided_cuda((8, 4)", "empty_strided_cuda((s0, 4)")
    assert kernel_traffic(unknown) == {}
